import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import test from 'node:test'
import { FlakeClient, formats, idgen, snowflake } from 'flake-client'
import FlakeId from 'flake-client/idgen'

const vectors = JSON.parse(readFileSync(new URL('../../../flake/testdata/bases.json', import.meta.url)))

test('text in every base is the same as the original\'s', () => {
  for (const { id_hex: hex, bases, time_ms: time, sequence } of vectors) {
    const id = formats.flake.fromBytes(Buffer.from(hex, 'hex'))
    assert.equal(id.toHex(), hex)
    assert.equal(id.time, BigInt(time))
    assert.equal(id.sequence, BigInt(sequence))
    for (const [base, text] of Object.entries(bases)) {
      assert.equal(id.toString(Number(base)), text)
      assert.equal(formats.flake.parse(text, Number(base)).value, id.value)
    }
  }
})

const ids = [
  // A format, an id in hexadecimal, its text, its fields.
  [formats.flake, '000001a1fda55bfc02fc000000010001', '0000BCfc0ALre7LoMSKqmn', { time: 1795256835068n, worker: 0x2fc00000001n, sequence: 1n }],
  [formats.snowflake, '0ca7d9a856127000', '911936766587596800', { time: 1506257642777n, machine: 295n, sequence: 0n }],
  [formats['flake-idgen'], '50ddd5990280001f', '5827048346035945503', { time: 1389276587018n, datacenter: 0n, worker: 0n, sequence: 31n }],
  [formats.sno, '3e0b4f88b20300070000', '9q7mx47k2e22g222', { time: 1795259468132n, tick_tock: 0n, meta: 3n, partition: 7n, sequence: 0n }],
  [formats.uuidv7, '018f0000123470ffbfffffffffffc001', '018f0000-1234-70ff-bfff-ffffffffc001', { time: 0x018f00001234n, version: 7n, sequence: 0xffn, variant: 2n, worker: 0xffffffffffffn, random: 1n }],
  [formats.ulid, '01563e3ab5d3d6764c61efb99302bd5b', '01ARZ3NDEKTSV4RRFFQ69G5FAV', { time: 1469922850259n, sequence: 0xd676n, worker: 0x4c61efb99302n, random: 0xbd5bn }]
]

for (const [format, hex, text, fields] of ids) {
  test(`an id of ${format.name}`, () => {
    const id = format.fromBytes(Buffer.from(hex, 'hex'))
    assert.equal(id.value, BigInt('0x' + hex))
    assert.equal(String(id), text)
    assert.deepEqual(id.fields, fields)
    assert.equal(id.date.getTime(), Number(fields.time))
    for (const same of [format.id(id.value), format.parse(text), format.parse(id.toString(62), 62), format.parse(hex, 16),
      format.parse(id.toString('crockford').toLowerCase(), 'crockford'), format.fromBytes(id.toBytes())]) {
      assert.equal(same.value, id.value)
    }
    assert.deepEqual(id.toBuffer(), Buffer.from(hex, 'hex'))
    assert.equal(JSON.stringify({ id }), JSON.stringify({ id: text }))
    assert.deepEqual([id.toPostgres(), id.toSqlString()], [text, `'${text}'`])
    assert.equal('' + id, text)
    assert.equal(inspect(id), `Id(${format.name} ${text})`)
    const [low, high] = format.span(id.date)
    assert.ok(low <= id && id <= high)
    assert.ok(format.span(id.time - format.unit)[1] < low && high < format.span(Number(id.time + format.unit))[0])
    assert.throws(() => +id, TypeError) // because it would be rounded
    if (format === formats.uuidv7) return
    const highest = format.id((1n << format.bits) - 1n)
    assert.equal(format.parse(String(highest)).value, highest.value)
  })
}

test('named bases', () => {
  const { flake } = formats
  const id = flake.parse('0000BCfc0ALre7LoMSKqmn')
  assert.equal(id.toString('uuid'), '000001a1-fda5-5bfc-02fc-000000010001')
  assert.equal(flake.parse(id.toString('uuid'), 'uuid').value, id.value)
  assert.equal(snowflake().id(911723800210665477n).toString('crockford'), '0S9RQYWYD6W05')
  assert.equal(formats.sno.id(292967453211759932276745n).toString('crockford'), '7R4WR9KR0400E009')
  assert.throws(() => snowflake().parse('G000000000000', 'crockford'), SyntaxError)
  assert.throws(() => snowflake().id(1n).toString('uuid'), RangeError)
})

// What nodes, and the other clients, read texts as.
test('texts are read as everywhere', () => {
  for (const line of readFileSync(new URL('../../../flake/testdata/read.tsv', import.meta.url), 'utf8').trim().split('\n')) {
    if (line.startsWith('#')) continue
    const [name, layout, base, text, hex, time] = line.split('\t')
    const [timeBits, machineBits, sequenceBits, epoch] = layout.split(' ').map(Number)
    const format = name === 'snowflake' ? snowflake({ timeBits, machineBits, sequenceBits, epoch }) : formats[name]
    const parse = () => format.parse(text, base === 'canonical' ? undefined : Number(base) || base)
    if (hex === '-') {
      assert.throws(parse, SyntaxError, line)
    } else {
      assert.deepEqual([parse().toHex(), String(parse().time)], [hex, time], line)
    }
  }
  assert.throws(() => snowflake().id(1n << 63n), RangeError)
  assert.throws(() => snowflake().fromBytes(new Uint8Array(8).fill(255)), RangeError)
})

// In tests of users, stores, and the proxies of reactive libraries.
test('ids can be compared, cloned and proxied', () => {
  const everything = Object.values(formats).concat(snowflake({ epoch: 0 }), idgen({ epoch: 1 }))
  for (const format of everything) {
    const [id, same, other] = [format.span(1700000000000)[0], format.span(1700000000000)[0], format.span(1700000000004)[0]]
    assert.deepStrictEqual(id, same)
    assert.notDeepStrictEqual(id, other)
    assert.notDeepEqual(id, other)
    for (const another of everything) if (another !== format) assert.notDeepStrictEqual(new another.Id(id.value), id)
    assert.deepEqual(structuredClone(id), { value: id.value })
    assert.deepStrictEqual(format.id(structuredClone(id).value), id)
    assert.deepEqual(Object.keys(id), ['value'])
    assert.throws(() => { id.value = 1n }, TypeError)
    const proxy = proxied({ id, format })
    assert.deepEqual([String(proxy.id), proxy.id.time, proxy.id.toHex(), proxy.id.format.name, JSON.stringify(proxy.id)],
      [String(id), id.time, id.toHex(), format.name, JSON.stringify(id)])
    assert.deepStrictEqual(proxy.format.parse(String(id)), id)
    assert.deepStrictEqual(proxy.format.span(1700000000000)[0], id)
    assert.throws(() => structuredClone(format), { name: 'DataCloneError' })
  }
  assert.notDeepEqual(snowflake({ epoch: 0 }), snowflake())
  assert.deepStrictEqual(snowflake({ epoch: new Date(0) }), snowflake({ epoch: 0 }))
  const clients = [0, 1].map(i => new FlakeClient({ nodes: `http://127.0.0.1:${i}` }))
  const generators = [0, 0].map(id => new FlakeId({ id }))
  for (const [one, two] of [clients, generators]) {
    assert.deepStrictEqual(one, one)
    assert.notDeepEqual(one, two)
    assert.throws(() => structuredClone(one), { name: 'DataCloneError' })
  }
  assert.equal(proxied(generators[0]).next().length, 8)
  proxied(generators[0]).next((err, id) => assert.ok(!err && id.length === 8))
  return assert.rejects(proxied({ client: clients[0] }).client.next({ signal: AbortSignal.abort() }), { name: 'AbortError' })
})

// A proxy of an object, and of all objects that are read from it.
const proxied = object => new Proxy(object, {
  get (target, key, receiver) {
    const value = Reflect.get(target, key, receiver)
    const { writable, configurable } = Reflect.getOwnPropertyDescriptor(target, key) ?? { writable: true }
    return typeof value === 'object' && value && (writable || configurable) ? proxied(value) : value
  }
})

test('text and values that are not ids are refused', () => {
  const { flake, sno, ulid, uuidv7 } = formats
  for (const [text, base] of [['', undefined], ['x', undefined], ['0000BCfc0ALre7LoMSKqm-', undefined], ['zzzzzzzzzzzzzzzzzzzzzz', undefined],
    ['', 10], ['12', 2], ['g', 16], ['1'.repeat(33), 16], ['018f0000-1234-70ff-bfff-ffffffffc00', undefined], ['018f0000-1234-70ff-bfff-ffffffffc00g', undefined]]) {
    assert.throws(() => flake.parse(text, base), SyntaxError)
  }
  assert.throws(() => flake.parse('x'), /"x" is not an id: must be 22 digits$/)
  assert.throws(() => flake.parse('BCfc0ALre7LoMSKqmn'), /must be 22 digits; parse\(text, 62\) reads/)
  assert.throws(() => sno.parse('2222222222222221'), SyntaxError)
  assert.throws(() => ulid.parse('80000000000000000000000000'), SyntaxError)
  assert.throws(() => ulid.parse('0000000000000000000000000I'), SyntaxError)
  assert.throws(() => uuidv7.parse('018f0000-1234-40ff-bfff-ffffffffc001'), /whose version is 7/)
  assert.throws(() => uuidv7.id(7n << 76n), /whose variant is 2/)
  assert.equal(uuidv7.id(0n).value, 0n)
  assert.throws(() => snowflake().parse('18446744073709551616'), SyntaxError)
  assert.throws(() => flake.parse(5n), TypeError)
  assert.throws(() => flake.parse('1', 63), RangeError)
  assert.throws(() => flake.id(5), TypeError)
  assert.throws(() => flake.id(1n << 128n), RangeError)
  assert.throws(() => flake.id(-1n), RangeError)
  assert.throws(() => flake.fromBytes(new Uint8Array(15)), RangeError)
  assert.throws(() => flake.fromBytes('0'), TypeError)
  assert.throws(() => flake.id((1n << 128n) - 1n).date, RangeError)
  assert.throws(() => sno.span(0), RangeError)
  for (const time of [null, '', '5', [], true, undefined, {}]) assert.throws(() => flake.span(time), TypeError)
  assert.throws(() => flake.span(0, null), TypeError)
  for (const epoch of [null, '', [], true]) assert.throws(() => snowflake({ epoch }), RangeError)
  assert.throws(() => sno.id(0n).withMeta(256), RangeError)
  assert.throws(() => flake.id(0n).withMeta(1), TypeError)
  assert.throws(() => sno.id(0n).toUUID(), RangeError)
  assert.throws(() => snowflake({ machineBits: 23 }), /machine 23, sequence -1: must be/)
  assert.throws(() => snowflake({ epoc: 0 }), /snowflake has no option epoc/)
  assert.throws(() => idgen({ epoc: 0 }), /idgen has no option epoc/)
  assert.throws(() => snowflake({ epoch: 'now' }), RangeError)
})

test('snowflakes of other layouts', () => {
  const format = snowflake({ epoch: new Date('2020-01-01'), machineBits: 6 })
  const id = format.id(1n << 22n | 63n << 16n | 0xFFFFn)
  assert.deepEqual(id.fields, { time: 1577836800001n, machine: 63n, sequence: 65535n })
  assert.deepEqual(snowflake({ epoch: 0, timeBits: 39, machineBits: 5, sequenceBits: 9 }).id((1n << 53n) - 1n).fields, { time: 2n ** 39n - 1n, machine: 31n, sequence: 511n })
  assert.equal(idgen({ epoch: 1300000000000 }).id(1n << 63n).time, 1300000000000n + (1n << 41n))
})

test('withMeta changes only the metabyte', () => {
  const id = formats.sno.parse('9q7mx47k2e22g222').withMeta(0x75)
  assert.equal(id.toHex(), '3e0b4f88b27500070000')
})

test('ids in the form of a UUID', () => {
  const id = formats.flake.parse('0000BCfc0ALre7LoMSKqmn')
  assert.equal(id.toUUID(), '000001a1-fda5-5bfc-02fc-000000010001')
  assert.equal(formats.flake.parse(id.toUUID().toUpperCase()).value, id.value)
})
