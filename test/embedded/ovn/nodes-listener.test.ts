/** Where nodes of clusters come in: what follows the port is theirs, in both directions. */
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { probePort } from '../../../embedded/kit/ports.ts'
import { openNodesListener } from '../../../embedded/ovn/nodes-listener.ts'

let folder: string
const servers: Server[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodes-listener-'))
})
afterEach(async () => {
  for (const server of servers.splice(0)) server.close()
  await rm(folder, { recursive: true })
})

/** What a node reads that says something, and then nothing more. */
async function say(port: number, text: string): Promise<string> {
  const client = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  client.on('error', () => {})
  client.end(text)
  let heard = ''
  client.on('data', (bytes: Buffer) => (heard += bytes.toString()))
  await new Promise((resolve) => client.once('close', resolve))
  return heard
}

test('the host of control planes learns the port from which a node came', async () => {
  const socket = join(folder, 'nodes.sock')
  const firstPort = await probePort('127.0.0.1', 0)
  servers.push(...(await openNodesListener({ address: '127.0.0.1', firstPort, ports: 1, socket })))
  expect(await say(firstPort, 'early')).toBe('') // nobody is there yet
  const host = createServer({ allowHalfOpen: true }, async (client) => {
    let heard = ''
    for await (const bytes of client) heard += String(bytes)
    client.end(`heard ${JSON.stringify(heard)}`)
  })
  servers.push(host)
  await new Promise<void>((resolve) => host.listen(socket, resolve))
  expect(await say(firstPort, 'hello')).toBe(`heard "${firstPort}\\nhello"`)
})
