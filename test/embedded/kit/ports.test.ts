import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { holdPort, keepPort, probePort, releasePort, takePort } from '../../../embedded/kit/ports.ts'

const HOST = '127.0.0.1'
/** Those that this machine gives to whoever does not care which begin above. */
const FIRST_OF_THE_SYSTEM = 32_768

function listen(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer()
      .once('error', reject)
      .listen(port, HOST, () => resolve())
    onTestFinished(() => void server.close())
  })
}

test('no port is chosen twice, nor one that the system has assigned in between', async () => {
  const ports = []
  for (let count = 0; count < 40; count++) ports.push(await probePort(HOST, 0))
  expect(new Set(ports).size).toBe(ports.length)
  expect(Math.max(...ports)).toBeLessThan(FIRST_OF_THE_SYSTEM)
})

test('a port that somebody listens on is passed over, and refused when it is asked for', async () => {
  const next = (await probePort(HOST, 0)) + 1
  await listen(next)
  expect(await probePort(HOST, 0)).not.toBe(next)
  await expect(probePort(HOST, next)).rejects.toThrow('EADDRINUSE')
})

test('a port in use is refused with who has it, and what to do', async () => {
  const port = await probePort(HOST, 0)
  await listen(port)
  const refusal: unknown = await takePort('port', HOST, port).catch((error: unknown) => error)
  expect(String(refusal)).toBe(
    `Error: Port ${port} on ${HOST} is in use by ${(await readFile('/proc/self/comm', 'utf8')).trim()} ` +
      `(process ${process.pid}). Stop what uses it, or choose another: npm start -- --port PORT (0 takes a free one)`,
  )
})

const PORTS = new URL('../../../embedded/kit/ports.ts', import.meta.url).href

/** Another process that chose the port and has not listened on it yet. */
async function chooseElsewhere(port: number) {
  const choose = `const { probePort } = await import('${PORTS}')
    console.log(await probePort('${HOST}', ${port}))
    setInterval(() => {}, 60_000)`
  const other = spawn(process.execPath, ['--input-type=module', '-e', choose], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void other.kill('SIGKILL'))
  await once(other.stdout, 'data')
  return {
    pid: other.pid,
    end: async () => {
      const ended = once(other, 'exit')
      other.kill('SIGKILL')
      await ended
    },
  }
}

test('what another process has chosen is passed over and refused before it listens, until it ends', async () => {
  const next = (await probePort(HOST, 0)) + 1
  const other = await chooseElsewhere(next)
  expect(await probePort(HOST, 0)).not.toBe(next)
  await expect(probePort(HOST, next)).rejects.toThrow('EADDRINUSE')
  await expect(holdPort(next)).rejects.toThrow('EADDRINUSE')
  await expect(keepPort(next, 'which zones name')).rejects.toThrow(
    `Port ${next}, which zones name, is in use by ${(await readFile(`/proc/${other.pid}/comm`, 'utf8')).trim()} ` +
      `(process ${other.pid}). Stop what uses it and start again.`,
  )
  await expect(takePort('port', HOST, next)).rejects.toThrow(`(process ${other.pid})`)
  await other.end()
  expect(await probePort(HOST, next)).toBe(next)
})

test('what is released, or was found in use, can be chosen elsewhere', async () => {
  const released = await probePort(HOST, 0)
  await releasePort(released)
  await chooseElsewhere(released)
  const port = await probePort(HOST, 0)
  await releasePort(port)
  const server = createServer().listen(port, HOST)
  await once(server, 'listening')
  await expect(probePort(HOST, port)).rejects.toThrow('EADDRINUSE')
  const closed = once(server, 'close')
  server.close()
  await closed
  await chooseElsewhere(port)
})
