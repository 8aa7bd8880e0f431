/** The order in which a connection to a database of OVN hears what is said to it, whatever comes at once. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Columns, openCopy, type TableUpdates } from '../../../../controllers/network/ovn/copy.ts'
import { connectOvsdb, monitor } from '../../../../controllers/network/ovn/ovsdb.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'

let folder: string
let server: Server
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-ovsdb-'))
})
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true, force: true })
})

/** A server that answers whatever is asked first with this, in one piece. */
async function answering(...messages: readonly object[]): Promise<string> {
  const path = join(folder, 'db.sock')
  server = createServer((socket) => {
    socket.once('data', () => void socket.write(messages.map((message) => JSON.stringify(message)).join('')))
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return `unix:${path}`
}

const UUID = '5f1c1f0e-3d3c-4c6e-9b3a-0d4f3a9a7f10'
const chassis = (update: object) => ({ Chassis_Private: { [UUID]: update } })

test('a change that comes together with the rows it changes is newer than they are', async () => {
  const remote = await answering(
    { id: 1, result: [false, UUID, chassis({ initial: { name: 'h1', nb_cfg: 2 } })], error: null },
    { id: null, method: 'update3', params: ['nodes', UUID, chassis({ modify: { nb_cfg: 3 } })] },
  )
  const copy = openCopy(() => 'scalar')
  const taken: (Columns | undefined)[] = []
  const take = (updates: TableUpdates) => {
    for (const { after } of copy.take(updates)) taken.push(after?.columns)
  }
  const connection = connectOvsdb(remote, {
    clock,
    onNotice: (_method, params) => take(params[2] as TableUpdates), // of the server above
  })
  const requests = { Chassis_Private: [{ columns: ['name', 'nb_cfg'] }] }
  await monitor(connection, { database: 'OVN_Southbound', id: 'nodes', requests }, take)
  expect(taken).toEqual([
    { name: 'h1', nb_cfg: 2 },
    { name: 'h1', nb_cfg: 3 },
  ])
  connection.close()
})
