/** Servers that listen, fail to and stop. */
import { createServer as createHttpServer, get } from 'node:http'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { closeNow, listen } from '../../../kit/sys/listen.ts'

const HOST = '127.0.0.1'

test('a port that is taken is an error, and a connection that cannot be accepted later is none', async () => {
  const [server, other] = [createServer(), createServer()]
  const port = await listen(server, { host: HOST, port: 0 })
  expect(port).toBeGreaterThan(0)
  await expect(listen(other, { host: HOST, port })).rejects.toThrow('EADDRINUSE')
  for (let times = 0; times < 2; times++) server.emit('error', new Error('accept EMFILE'))
  await new Promise((resolve) => server.close(resolve))
})

test('stopping ends requests that are not answered', async () => {
  const asked = Promise.withResolvers<void>()
  const server = createHttpServer(() => asked.resolve())
  const port = await listen(server, { host: HOST, port: 0 })
  const failed = new Promise((resolve) => get({ host: HOST, port }, () => {}).once('error', resolve))
  await asked.promise
  await closeNow(server)
  expect(await failed).toBeInstanceOf(Error)
  expect(server.listening).toBe(false)
})
