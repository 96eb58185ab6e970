export { FlakeClient } from './client.js'
export { FlakeError, NodeError, NoNodeError } from './errors.js'
export { formats, idgen, snowflake } from './format.js'
export { Id } from './id.js'
