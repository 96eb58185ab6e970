import { FlakeClient } from 'flake-client'
import FlakeId = require('flake-client/idgen')

const client = new FlakeClient({ nodes: 'http://127.0.0.1:8465', format: 'flake-idgen' })
client.next().then(id => console.log(id.date, id.toBuffer().length))
console.log(new FlakeId({ id: 5 }).next().length)
