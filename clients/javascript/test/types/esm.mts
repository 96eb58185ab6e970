// Compiled, not run: code that must compile, and code that must not.
import { FlakeClient, FlakeError, NoNodeError, formats, snowflake, type Id } from 'flake-client'
import FlakeId from 'flake-client/idgen'

const client = new FlakeClient({
  nodes: ['http://127.0.0.1:8465', new URL('http://127.0.0.2'), { url: '/ids', token: 'secret' }],
  format: snowflake({ epoch: new Date(0) }),
  lease: { size: 10 }
})
const id: Id = await client.next({ signal: AbortSignal.timeout(100) })
const ids: Id[] = await client.nextN(3)
const texts: string[] = [String(id), id.toHex(), id.toString(62), JSON.stringify(ids)]
const value: bigint = id.value + id.time + id.worker + id.sequence + id.fields.machine!
const bytes: Uint8Array = id.toBytes()
const [low, high] = formats.flake.span(new Date(), Date.now())
console.log(texts, value, bytes, low < high, formats.sno.parse('2').withMeta(5), formats['flake-idgen'].name)
try { client.close() } catch (err) {
  if (err instanceof NoNodeError) console.log(err.errors.map(({ node, status, reason }) => [node, status, reason]))
  if (err instanceof FlakeError && err.code === 'closed') console.log('closed')
}

const generator = new FlakeId({ datacenter: 9, worker: 7 })
const eight: Uint8Array = generator.next()
const options: FlakeId.Options = generator.options
generator.next((err: Error | null, id: Uint8Array) => console.log(err, id, eight, options))

// @ts-expect-error
new FlakeClient({})
// @ts-expect-error
new FlakeClient({ nodes: '', format: 'none' })
// @ts-expect-error
const number: number = id.value
// @ts-expect-error
new FlakeId({ Worker: 5 })
