/** A Buffer if the types of Node.js are present. */
type Bytes = typeof globalThis extends { Buffer: { alloc (size: number): infer B } } ? B : Uint8Array

/** A Date, or milliseconds since 1970. */
export type Time = Date | number | bigint

/**
 * A base from 2 to 62; Crockford's base 32, in upper case and padded to 26, 16 or 13 digits,
 * which sort as ids do; or, for ids of 16 bytes, the form of a UUID.
 */
export type Base = number | 'crockford' | 'uuid'

/** The layout of ids. */
export interface Format {
  /** The name that nodes use: flake, snowflake, flake-idgen, sno, uuidv7 or ulid. */
  readonly name: string
  /** The size of an id, in bytes. */
  readonly size: number
  /** The id with a numeric value. */
  id (value: bigint): Id
  /** The id with these bytes, the most significant first. */
  fromBytes (bytes: Uint8Array): Id
  /**
   * The id that the text represents. Without a base, the text is the format's own, or a UUID if ids
   * have 16 bytes, also in braces or after urn:uuid:. With a base, the text is in that base; from 2 to 62, its digits are 0-9A-Za-z.
   * Throws SyntaxError if the text is not an id.
   */
  parse (text: string, base?: Base): Id
  /** The lowest and the highest id of the milliseconds from first to last, both included, for range scans. */
  span (first: Time, last?: Time): [lowest: Id, highest: Id]
}

/** The formats by name. snowflake has Twitter's epoch and bits; the epoch of flake-idgen is 1970. */
export const formats: Readonly<Record<'flake' | 'snowflake' | 'flake-idgen' | 'sno' | 'uuidv7' | 'ulid', Format>>

/** Snowflakes with another epoch or other bits. Some of the machine's bits may be for its datacenter. */
export function snowflake (options?: {
  epoch?: Date | number
  timeBits?: number
  machineBits?: number
  datacenterBits?: number
  sequenceBits?: number
}): Format

/** The ids of flake-idgen with another epoch. */
export function idgen (options?: { epoch?: Date | number }): Format

/** An id. It is immutable, and value is its only own property. In strings it becomes its format's own text; < and > compare ids. */
export class Id {
  private constructor ()
  readonly format: Format
  readonly value: bigint
  /** The format's own text, or the text in a base: from 2 to 62, with digits 0-9A-Za-z and no leading zeros. */
  toString (base?: Base): string
  /** The bytes in hexadecimal, in lower case. */
  toHex (): string
  /** For ids of 16 bytes only. */
  toUUID (): string
  toBytes (): Uint8Array
  /** In Node.js only. */
  toBuffer (): Bytes
  toJSON (): string
  /** For the driver pg. */
  toPostgres (): string
  /** For the drivers mysql and mysql2. */
  toSqlString (): string
  /** The fields by the names that nodes use: time in ms since 1970, worker, sequence, or the format's other fields. */
  readonly fields: Readonly<Record<string, bigint>>
  /** The time in ms since 1970. */
  readonly time: bigint
  readonly date: Date
  /** The worker: a snowflake's machine, or sno's partition; for flake-idgen, the worker without the datacenter. */
  readonly worker: bigint
  readonly sequence: bigint
  /** This id with a different metabyte; for ids of sno only. */
  withMeta (meta: number): Id
}

export interface Options {
  /** URLs such as http://127.0.0.1:8465, at most 100, in order of preference. In a browser they may be relative. */
  nodes: string | URL | { url: string | URL, token?: string } | Array<string | URL | { url: string | URL, token?: string }>
  /** The token, if the nodes require one. */
  token?: string
  /** The generator's name; default flake. */
  generator?: string
  /** The generator's format; default flake. */
  format?: keyof typeof formats | Format
  /** The time limit of a call in ms: 1 to 3,600,000, default 5000. */
  timeout?: number
  /** The ids per lease, 1 to 1,048,576, default 1000; and its maximum age in ms, 1 to 60,000, default 100. */
  lease?: { size?: number, maxAge?: number }
}

/** Ids of a generator, leased ahead. */
export class FlakeClient {
  constructor (options: Options)
  /** The next id. */
  next (options?: { signal?: AbortSignal }): Promise<Id>
  /** The next n ids, 1 to 1,048,576, from one lease. */
  nextN (n: number, options?: { signal?: AbortSignal }): Promise<Id[]>
  /** Drops the leased ids. Later calls fail. */
  close (): void
}

/** The error of a client. */
export class FlakeError extends Error {
  readonly code: 'no_node' | 'busy' | 'closed' | NodeError['code']
}

/** Why one node did not answer with ids. */
export class NodeError extends FlakeError {
  readonly code: 'unreachable' | 'timeout' | 'refused' | 'unavailable' | 'bad_answer' | 'not_above'
  /** The node's URL. */
  readonly node: string
  /** The status of the node's answer, if it is not 200. */
  readonly status?: number
  /** Why the node has no ids for now, such as clock_running_backwards. */
  readonly reason?: string
}

/** No node answered with ids in time. */
export class NoNodeError extends FlakeError {
  readonly code: 'no_node'
  /** One error for each node that was asked. */
  readonly errors: NodeError[]
}
