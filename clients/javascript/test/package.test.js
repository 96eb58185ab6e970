// Tests what users get: types, CommonJS modules, and a README whose examples run.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import test from 'node:test'
import * as modules from 'flake-client'
import FlakeId from 'flake-client/idgen'
import { start } from './node.js'

const run = promisify(execFile)
const here = fileURLToPath(new URL('.', import.meta.url))

test('the types match', async () => {
  const tsc = join(here, '../node_modules/typescript/bin/tsc')
  await assert.doesNotReject(run(process.execPath, [tsc, '-p', join(here, 'types')]).catch(err => { throw new Error(err.stdout || err.message) }))
})

// TypeScript before 4.7, and other tools of that age, do not know exports.
test('both entries are found without exports', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'flake-client-'))
  try {
    await mkdir(join(dir, 'node_modules'))
    await symlink(join(here, '..'), join(dir, 'node_modules/flake-client'))
    const code = "import { formats } from 'flake-client'\nimport FlakeId = require('flake-client/idgen')\n" +
      'const all: [string, number] = [formats.flake.name, new FlakeId({ id: 5 }).next().length]\n'
    await writeFile(join(dir, 'old.ts'), code)
    const options = '--noEmit --strict --module commonjs --moduleResolution node10 --target es2022 --lib es2022,dom --skipLibCheck'
    const tsc = join(here, '../node_modules/typescript/bin/tsc')
    await run(process.execPath, [tsc, ...options.split(' '), join(dir, 'old.ts')]).catch(err => { throw new Error(err.stdout || err.message) })
    const { main } = JSON.parse(await readFile(join(here, '../idgen/package.json')))
    assert.equal(createRequire(import.meta.url)(join(here, '../idgen', main)).name, FlakeId.name)
  } finally {
    await rm(dir, { recursive: true })
  }
})

test('the tarball has the license', async () => {
  const { stdout } = await run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: join(here, '..') })
  const names = JSON.parse(stdout)[0].files.map(({ path }) => path)
  for (const name of ['LICENSE', 'cjs/idgen.cjs', 'idgen/package.json']) assert.ok(names.includes(name), `no ${name} in ${names}`)
})

test('the CommonJS modules have the same exports', () => {
  const require = createRequire(import.meta.url)
  assert.deepEqual(Object.keys(require('flake-client')).sort(), Object.keys(modules).sort())
  const Theirs = require('flake-client/idgen')
  assert.equal(Theirs.name, FlakeId.name)
  assert.equal(new Theirs({ id: 5 }).next().length, 8)
})

test('the examples of README.md run', async () => {
  const readme = await readFile(join(here, '../README.md'), 'utf8')
  const examples = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code)
  assert.ok(examples.length >= 4)
  const node = await start(() => `[[generator]]\nname = "orders"\nformat = "snowflake"\nepoch = 2020-01-01T00:00:00Z\nid = ${Math.floor(Math.random() * 1024)}\n`)
  const dir = await mkdtemp(join(here, 'readme-')) // where the name flake-client is this package
  try {
    await Promise.all(examples.map(async (code, i) => {
      const file = join(dir, `${i}.${code.includes('require(') ? 'cjs' : 'mjs'}`)
      await writeFile(file, code.replaceAll(/http:\/\/(127\.0\.0\.1:8465|10\.0\.0\.\d:8465)/g, node.url)
        .replaceAll('FlakeClient({', 'FlakeClient({ timeout: 60000,').replaceAll('timeout(3000)', 'timeout(60000)')) // on a slow machine
      await run(process.execPath, [file])
    }))
  } finally {
    await rm(dir, { recursive: true })
  }
})

// What an example prints, for the id in README.md.
test('README.md shows one id in all its forms', async () => {
  const readme = await readFile(join(here, '../README.md'), 'utf8')
  const [, text, value, hex, date, time, worker, sequence] = readme.match(/\/\/ (\w{22})\n.*\/\/ (\d+)n, (\w{32})\n.*\/\/ (\S+Z) { time: (\d+)n, worker: (\d+)n, sequence: (\d+)n }\n/)
  const id = modules.formats.flake.parse(text)
  assert.equal(value, String(id.value))
  assert.equal(hex, id.toHex())
  assert.equal(date, id.date.toISOString())
  assert.deepEqual([time, worker, sequence].map(BigInt), Object.values(id.fields))
})
