// Nodes for tests: real ones, and servers that answer as a test specifies.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect, createServer as createFront } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pipeline } from 'node:stream'
import { after } from 'node:test'

/**
 * Starts a real node, with the text of more() in its configuration. If a node of another
 * test has the same numbers, it calls more() again. FLAKE is the command that clients/test
 * builds.
 */
export async function start (more = () => '') {
  const dir = await mkdtemp(join(tmpdir(), 'flake-client-'))
  const node = { dir, clock: join(dir, 'clock') }
  node.start = async () => {
    await writeFile(join(dir, 'sys.toml'), `
[node]
name = "js@127.0.0.1"
epmd = "off"
[flake]
timestamp_path = "${dir}/timestamp"
worker_id = "random"
[http]
listen = "127.0.0.1:0"
${more()}`)
    const args = ['-noinput', '-config', join(dir, 'sys.toml')]
    node.process = spawn(process.env.FLAKE ?? 'flake', args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, STEPPED_CLOCK: node.clock } })
    node.ended = once(node.process, 'close')
    let said = ''
    node.process.stderr.on('data', text => { said += text })
    for await (const line of createInterface(node.process.stdout)) {
      node.url = /http:\/\/[0-9.:]+/.exec(line)?.[0]
      if (node.url) {
        node.process.stdout.resume()
        return node
      }
    }
    await node.ended
    if (said.includes('another generator on this machine has it')) return node.start()
    throw new Error(`the node did not start: ${said}`)
  }
  node.step = async ns => {
    await writeFile(`${node.clock}.new`, String(ns))
    await rename(`${node.clock}.new`, node.clock) // atomic, so that the node never reads half a number
  }
  node.kill = async signal => {
    node.url = undefined
    node.process.kill(signal)
    await node.ended
  }
  after(async () => {
    if (node.process?.exitCode === null && node.process.signalCode === null) await node.kill('SIGTERM')
    await rm(dir, { recursive: true })
  })
  return node.start()
}

/** Listens on a fixed port for a node, whose own port changes when it restarts. */
export async function front (node) {
  const server = createFront(socket => {
    if (!node.url) return socket.destroy()
    pipeline(socket, connect(new URL(node.url).port, '127.0.0.1'), socket, () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => server.close())
  return `http://127.0.0.1:${server.address().port}`
}

/** Serves HTTP with answer(request, response) until the tests end. */
export async function serve (answer) {
  const server = createServer((request, response) => {
    server.requests.push(request)
    answer(request, response)
  })
  server.requests = []
  server.keepAliveTimeout = 0 // otherwise a delayed process would find its connections closed
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  after(() => {
    server.close()
    server.closeAllConnections()
  })
  server.url = `http://127.0.0.1:${server.address().port}`
  return server
}

/** Returns a handler that leases flake ids of a worker, in JSON. Each lease has its own millisecond. */
export function leaser (worker = 1n, time = 1n) {
  return (request, response) => {
    const n = Number(new URL(request.url, 'http://x').searchParams.get('n'))
    const first = (time++ << 64n) + (worker << 16n)
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ leases: [{ first: flakeText(first), count: n }] }))
  }
}

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export function flakeText (value) {
  let text = ''
  for (; value > 0n; value /= 62n) text = digits[Number(value % 62n)] + text
  return text.padStart(22, '0')
}

/** Waits for a condition. It gives up after 5 minutes. */
export async function until (condition) {
  for (const began = process.uptime(); !await condition(); await new Promise(resolve => setTimeout(resolve, 1))) {
    if (process.uptime() - began > 300) throw new Error(`still false after 5 minutes: ${condition}`)
  }
}
