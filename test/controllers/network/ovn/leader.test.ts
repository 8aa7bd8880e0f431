/** Which server of a database a connection is to, and that it ends when another one leads. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connectToLeader } from '../../../../controllers/network/ovn/leader.ts'
import { defined } from '../../../../domain/defined.ts'
import { Unavailable } from '../../../../domain/problem.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'

const DATABASE = 'OVN_Northbound'
const OWN = '5f1c1f0e-3d3c-4c6e-9b3a-0d4f3a9a7f10'
const OTHER = '0d4f3a9a-3d3c-4c6e-9b3a-5f1c1f0e7f10'
const LEADS = { leader: true, connected: true }
const FOLLOWS = { leader: false, connected: true }
const ALONE = { leader: true, connected: false }

interface Row {
  readonly leader: boolean
  readonly connected: boolean
}

interface Request {
  readonly id: number
  readonly method: string
  readonly params: readonly [string, unknown, { readonly Database?: readonly { select?: { initial?: boolean } }[] }]
}

let folder: string
const servers: Server[] = []
const sockets: Socket[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-leader-'))
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true, force: true })
})

const rowOf = (row: Row) => ({ name: DATABASE, ...row })
const update = (uuid: string, row: object | undefined, old: object = {}) => ({
  id: null,
  method: 'update',
  params: ['server', { Database: { [uuid]: defined({ old, new: row }) } }],
})

/** A server that leads or not. `next`: what it is from the moment after its first answer. `send` sends more. */
async function serving(name: string, first: Row, next = first) {
  const path = join(folder, name)
  let row = first
  const write = (socket: Socket, messages: readonly object[]) =>
    void socket.write(messages.map((message) => JSON.stringify(message)).join(''))
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {}) // the client closes
    let isMonitored = false
    socket.on('data', (bytes) => {
      const { id, method, params } = JSON.parse(bytes.toString()) as Request // a small one comes in one piece
      isMonitored ||= method === 'monitor'
      const initial = { [OTHER]: { new: { name: '_Server', ...LEADS } }, [OWN]: { new: rowOf(row) } }
      const results: Readonly<Record<string, unknown>> = {
        transact: [{ rows: [rowOf(row)] }],
        monitor: params[2]?.Database?.[0]?.select?.initial === false ? {} : { Database: initial },
      }
      const changes = row === next || !isMonitored ? [] : [update(OWN, rowOf(next), rowOf(row))]
      row = next
      write(socket, [{ id, result: results[method] ?? [], error: null }, ...changes])
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    remote: `unix:${path}`,
    send: (message: object) => {
      for (const socket of sockets) write(socket, [message])
    },
  }
}

function connect(remotes: string) {
  const ended = Promise.withResolvers<void>()
  return { ended: ended.promise, connected: connectToLeader(remotes, DATABASE, { clock, onEnd: ended.resolve }) }
}

test('the server that leads and reaches the others is the one', async () => {
  const follower = await serving('follower', FOLLOWS)
  const alone = await serving('alone', ALONE)
  const leader = await serving('leader', LEADS)
  const connection = await connect([follower, alone, leader].map(({ remote }) => remote).join(',')).connected
  expect(connection.isOver()).toBe(false)
  connection.close()
  await expect(connect([follower, alone].map(({ remote }) => remote).join(',')).connected).rejects.toThrow(Unavailable)
})

test('no connection is left to a server that stops leading right after its first answer', async () => {
  const { remote } = await serving('former', LEADS, FOLLOWS)
  await expect(connect(remote).connected.then((connection) => connection.call('echo', []))).rejects.toThrow(Unavailable)
})

test.each([
  ['stops leading', rowOf(FOLLOWS)],
  ['loses the other servers', rowOf(ALONE)],
  ['no longer has the database', undefined],
])('the connection ends when the server %s', async (_what, row) => {
  const { remote, send } = await serving('leader', LEADS)
  const { connected, ended } = connect(remote)
  const connection = await connected
  send(update(OTHER, { name: '_Server', ...FOLLOWS }))
  send(update(OWN, rowOf(LEADS)))
  await connection.call('echo', [])
  expect(connection.isOver()).toBe(false)
  send(update(OWN, row, rowOf(LEADS)))
  await ended
  expect(connection.isOver()).toBe(true)
})
