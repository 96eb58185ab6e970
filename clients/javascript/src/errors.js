/** An error of a client, identified by its code. */
export class FlakeError extends Error {
  constructor (code, message, options) {
    super(message, options)
    this.code = code
  }

  get name () { return this.constructor.name }
}

/** Why one node did not answer with ids. */
export class NodeError extends FlakeError {
  constructor (code, node, message, options) {
    super(code, `${node}: ${message}`, options)
    this.node = node
  }

  /** Whether asking again may help. */
  get passes () { return !['refused', 'bad_answer'].includes(this.code) }
}

/** No node answered with ids in time. errors says why, for each node that was asked. */
export class NoNodeError extends FlakeError {
  constructor (errors) {
    super('no_node', ['no node answered with ids', ...errors.map(({ message }) => message)].join('; '))
    this.errors = errors
  }
}
