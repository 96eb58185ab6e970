import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import test, { after } from 'node:test'
import { formats } from 'flake-client'
import { serve, start } from './node.js'

/** Starts a headless Chromium, controlled by WebDriver (https://www.w3.org/TR/webdriver2/). */
async function browser () {
  const driver = spawn('chromedriver', ['--port=0'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(driver, 'exit')
  const lines = createInterface(driver.stdout)[Symbol.asyncIterator]()
  let port
  while (!port) {
    const { value, done } = await lines.next()
    if (done) throw new Error('chromedriver ended')
    port = /successfully on port (\d+)/.exec(value)?.[1]
  }
  driver.stdout.resume()
  let session = ''
  const command = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}/session${session}${path}`, { method, body: body && JSON.stringify(body) })
    const { value } = await answer.json()
    if (!answer.ok) throw new Error(`${path}: ${value.message}`)
    return value
  }
  const dir = await mkdtemp(join(tmpdir(), 'flake-client-browser-'))
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', `--user-data-dir=${dir}`]
  after(async () => {
    if (session) await command('DELETE', '')
    driver.kill()
    await ended
    await rm(dir, { recursive: true, force: true })
  })
  const { sessionId } = await command('POST', '', { capabilities: { alwaysMatch: { browserName: 'chrome', 'goog:chromeOptions': { args } } } })
  session = `/${sessionId}`
  return command
}

// Serves a page, and forwards requests for ids below /ids/ to the node.
async function site (node) {
  return serve((asked, response) => {
    if (asked.url.startsWith('/ids/')) {
      const on = request(node.url + asked.url.slice('/ids'.length), { method: asked.method, headers: asked.headers }, answer => {
        response.writeHead(answer.statusCode, answer.headers)
        answer.pipe(response)
      })
      asked.pipe(on)
    } else if (asked.url.startsWith('/src/')) {
      response.setHeader('Content-Type', 'text/javascript')
      readFile(new URL('..' + asked.url, import.meta.url)).then(text => response.end(text))
    } else {
      response.setHeader('Content-Type', 'text/html')
      response.end('<!DOCTYPE html><title>ids</title>')
    }
  })
}

test('a page gets ids from its own origin, but not from another', async () => {
  const [command, node] = await Promise.all([browser(), start()])
  const { url } = await site(node)
  await command('POST', '/url', { url })
  const take = (nodes, timeout) => command('POST', '/execute/sync', {
    script: `return import('/src/index.js').then(async ({ FlakeClient }) => {
      const client = new FlakeClient({ nodes: arguments[0], timeout: arguments[1] })
      try {
        const ids = await Promise.all(Array.from({ length: 2000 }, () => client.next()))
        return ids.map(String)
      } catch (err) {
        return err.errors.map(({ code }) => code)
      }
    })`,
    args: [nodes, timeout]
  })
  const ids = await take('/ids', 20000)
  assert.equal(new Set(ids).size, 2000)
  assert.deepEqual([...ids].sort(), ids)
  assert.ok(Math.abs(Number(formats.flake.parse(ids[0]).time) - Date.now()) < 600000)
  let refused
  for (let timeout = 1000; !refused || refused[0] === 'timeout'; timeout *= 2) refused = await take(node.url, timeout) // a slow machine needs longer
  assert.deepEqual(refused, ['unreachable'])
  const made = await command('POST', '/execute/sync', {
    script: "return import('/src/idgen.js').then(({ default: FlakeId }) => new FlakeId({ id: 5 }).next().length)", args: []
  })
  assert.equal(made, 8)
})
