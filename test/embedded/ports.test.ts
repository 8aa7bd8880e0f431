import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { probePort } from '../../embedded/ports.ts'

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
