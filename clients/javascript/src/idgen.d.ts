/** A Buffer if the types of Node.js are present. */
type Bytes = typeof globalThis extends { Buffer: { alloc (size: number): infer B } } ? B : Uint8Array

declare namespace FlakeId {
  interface Options {
    /** The generator id, 0 to 1023, instead of datacenter and worker. */
    id?: number
    /** 0 to 31. */
    datacenter?: number
    /** 0 to 31. */
    worker?: number
    /** The time that ids count from, in ms since 1970. */
    epoch?: number | Date
    /** 1 to 4095: each sequence is the previous one plus 1, masked with this. */
    seqMask?: number
  }
}

/** Makes the ids of flake-idgen in this process. It stores nothing. */
declare class FlakeId {
  constructor (options?: FlakeId.Options)
  readonly options: FlakeId.Options
  readonly id: number
  readonly datacenter: number | undefined
  readonly worker: number | undefined
  readonly epoch: number
  readonly seqMask: number
  /** The next id, 8 bytes. Its errors have the code clock_running_backwards, sequence_exceeded or time_exceeded. */
  next (): Bytes
  /** Calls back with the next id, in the order of the calls, once the clock allows one. */
  next (cb: (err: Error | null, id: Bytes) => void): void
}

export default FlakeId
