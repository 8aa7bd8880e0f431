import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { probePort, takePort } from '../../embedded/ports.ts'

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

test('no port is chosen twice, nor one that the system gives to anybody meanwhile', async () => {
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
