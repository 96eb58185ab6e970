/** A Buffer where types of Node.js are there. */
type Bytes = typeof globalThis extends { Buffer: { alloc (size: number): infer B } } ? B : Uint8Array

/** A Date, or milliseconds since 1970. */
export type Time = Date | number | bigint

/**
 * 2 to 62; Crockford's base 32, upper case, padded to 26, 16 or 13 digits that sort as ids
 * do; or, of ids of 16 bytes, the form of a UUID.
 */
export type Base = number | 'crockford' | 'uuid'

/** How ids are put together. */
export interface Format {
  /** As nodes have it: flake, snowflake, flake-idgen, sno, uuidv7 or ulid. */
  readonly name: string
  /** Of an id, in bytes. */
  readonly size: number
  /** The id that is a number. */
  id (value: bigint): Id
  /** The id of its bytes, the most significant first. */
  fromBytes (bytes: Uint8Array): Id
  /**
   * The id of a text: the format's own, or a UUID if ids have 16 bytes; with a base from 2
   * to 62, digits 0-9A-Za-z, or in another Base. What is none is a SyntaxError.
   */
  parse (text: string, base?: Base): Id
  /** The lowest and the highest id of some milliseconds, both ends included, for range scans. */
  span (first: Time, last?: Time): [lowest: Id, highest: Id]
}

/** The formats by name. Of snowflake the epoch and the bits are Twitter's, of flake-idgen the epoch is 1970. */
export const formats: Readonly<Record<'flake' | 'snowflake' | 'flake-idgen' | 'sno' | 'uuidv7' | 'ulid', Format>>

/** Snowflakes of another epoch or other bits. Of the bits of the machine some may be its datacenter's. */
export function snowflake (options?: {
  epoch?: Date | number
  timeBits?: number
  machineBits?: number
  datacenterBits?: number
  sequenceBits?: number
}): Format

/** Ids of flake-idgen with an epoch. */
export function idgen (options?: { epoch?: Date | number }): Format

/** An id. It does not change. In strings it is its own text; < and > compare ids. */
export class Id {
  private constructor ()
  readonly format: Format
  readonly value: bigint
  /** The text of its format; with a base from 2 to 62, digits 0-9A-Za-z without leading zeros; or in another Base. */
  toString (base?: Base): string
  /** Its bytes, lower case. */
  toHex (): string
  /** Of an id of 16 bytes. */
  toUUID (): string
  toBytes (): Uint8Array
  /** In Node.js. */
  toBuffer (): Bytes
  toJSON (): string
  /** By the names that nodes have for them: time in ms since 1970, worker, sequence, or the format's own. */
  readonly fields: Readonly<Record<string, bigint>>
  /** In ms since 1970. */
  readonly time: bigint
  readonly date: Date
  /** Of a snowflake its machine, of sno its partition, of flake-idgen the worker without the datacenter. */
  readonly worker: bigint
  readonly sequence: bigint
  /** The sno id with another metabyte. */
  withMeta (meta: number): Id
}

export interface Options {
  /** URLs such as http://127.0.0.1:8465, at most 100, the preferred one first. In a browser they may be relative. */
  nodes: string | URL | { url: string | URL, token?: string } | Array<string | URL | { url: string | URL, token?: string }>
  /** What nodes require, if they do. */
  token?: string
  /** By name; without it flake. */
  generator?: string
  /** Of the generator; without it flake. */
  format?: keyof typeof formats | Format
  /** How long a call may take, in ms: 1 to 3,600,000, without it 5000. */
  timeout?: number
  /** Ids in a lease, 1 to 1,048,576, without it 1000; and its age in ms, 1 to 60,000, without it 100. */
  lease?: { size?: number, maxAge?: number }
  /** @deprecated Is never called: numbers from etcd keep the workers of nodes apart. */
  onWarning?: (err: FlakeError) => void
}

/** Ids of a generator, leased ahead. */
export class FlakeClient {
  constructor (options: Options)
  /** The next id. */
  next (options?: { signal?: AbortSignal }): Promise<Id>
  /** The next n ids, 1 to 1,048,576, of one lease. */
  nextN (n: number, options?: { signal?: AbortSignal }): Promise<Id[]>
  /** Drops what is leased. Calls fail from then on. */
  close (): void
}

/** What a client fails with. */
export class FlakeError extends Error {
  /** same_worker is deprecated, and never there. */
  readonly code: 'no_node' | 'busy' | 'closed' | 'same_worker' | NodeError['code']
}

/** Why one node did not answer with ids. */
export class NodeError extends FlakeError {
  readonly code: 'unreachable' | 'timeout' | 'refused' | 'unavailable' | 'bad_answer' | 'not_above'
  /** Its URL. */
  readonly node: string
  /** Of an answer that is not 200. */
  readonly status?: number
  /** Why there are no ids for now, as clock_running_backwards. */
  readonly reason?: string
}

/** No node answered with ids in time. */
export class NoNodeError extends FlakeError {
  readonly code: 'no_node'
  /** One for each node that was asked. */
  readonly errors: NodeError[]
}
