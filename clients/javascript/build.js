// Makes the CommonJS modules in cjs from the ES modules in src, by rewriting imports and
// exports, and copies the license. Run it before the tests and before a release.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'

const from = new URL('src/', import.meta.url)
const to = new URL('cjs/', import.meta.url)

const required = (names, file) => `const ${names} = require('./${file}.cjs')`

function commonJS (text) {
  const exported = []
  text = text
    .replace(/^import (\{.*\}) from '\.\/(\w+)\.js'$/gm, (_, names, file) => required(names, file))
    .replace(/^export (\{.*\}) from '\.\/(\w+)\.js'$/gm, (_, names, file) => {
      exported.push(...names.match(/\w+/g))
      return required(names, file)
    })
    .replace(/^export default class (\w+)/gm, 'module.exports = class $1')
    .replace(/^export ((?:async )?(?:function|class|const) (\w+))/gm, (_, begin, name) => {
      exported.push(name)
      return begin
    })
  const left = text.match(/^(import|export)\b.*/m)
  if (left) throw new Error(`cannot convert to CommonJS: ${left[0]}`)
  if (exported.length > 0) text += `\nmodule.exports = { ${exported.join(', ')} }\n`
  return `'use strict'\n${text}`
}

const license = new URL('LICENSE', import.meta.url)
if (!existsSync(license)) copyFileSync(new URL('../../LICENSE', import.meta.url), license)
rmSync(to, { recursive: true, force: true })
mkdirSync(to)
for (const name of readdirSync(from)) {
  const file = new URL(name, from)
  if (name.endsWith('.d.ts')) {
    const types = readFileSync(file, 'utf8').replace(/^export default (\w+)$/m, 'export = $1')
    writeFileSync(new URL(name.replace('.d.ts', '.d.cts'), to), types)
  } else {
    writeFileSync(new URL(name.replace('.js', '.cjs'), to), commonJS(readFileSync(file, 'utf8')))
  }
}
