// Calls every operation of the HTTP API at a URL with openapi-fetch, and the types that
// openapi-typescript makes, in api.d.ts.
import createClient from 'openapi-fetch'
import type { paths } from './api.js'

declare const process: { argv: string[] } // of Node.js

const { GET, POST } = createClient<paths, `application/${'' | 'problem+'}json`>({ baseUrl: process.argv[2], headers: { accept: 'application/json' } })

function must<T> (what: string, { data, error }: { data?: T, error?: unknown }, ok: (data: T) => boolean): T {
  if (data === undefined || !ok(data)) throw new Error(`${what}: ${JSON.stringify(data ?? error)}`)
  return data
}

const headers = { 'content-type': 'application/x-www-form-urlencoded' }
const query = { n: 3 }

const { ids } = must('ids', await GET('/v1/ids', { params: { query } }), ({ ids }) => ids.length === 3)
must('posted', await POST('/v1/ids', { body: { n: 3, generator: 'events', meta: 7 }, headers }), ({ ids }) => ids.length === 3)
must('leases', await GET('/v1/leases', { params: { query } }), ({ leases }) => leases[0].count >= 1)
const { leases } = must('posted leases', await POST('/v1/leases', { body: { n: 3, base: '62' }, headers }), ({ leases }) => leases[0].count >= 1)
must('fields', await GET('/v1/ids/{id}', { params: { path: { id: ids[0] } } }), ({ format }) => format === 'flake')
const { error } = await GET('/v1/ids/{id}', { params: { path: { id: leases[0].first } } }) // in base 62
if (error === undefined || error.parameter !== 'id') throw new Error(`no id: ${JSON.stringify(error)}`)
const span = { from: '1795219200000', to: '2026-11-22T00:00:00Z' }
must('bounds', await GET('/v1/notional', { params: { query: span } }), ({ id, lowest }) => lowest !== undefined && id === undefined)
must('info', await GET('/v1/info'), ({ generators }) => generators[0].name === 'flake')
must('health', await GET('/healthz', { parseAs: 'text' }), text => text.length > 0)
must('readiness', await GET('/readyz', { parseAs: 'text' }), text => text.length > 0)
must('metrics', await GET('/metrics', { parseAs: 'text' }), text => text.length > 0)
must('document', await GET('/openapi.yaml', { parseAs: 'text' }), text => text.length > 0)
