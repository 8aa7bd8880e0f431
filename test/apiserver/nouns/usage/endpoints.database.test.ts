import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordReadings } from '../../../../db/usage/index.ts'
import { NO_COUNTERS } from '../../../../domain/usage/rules.ts'
import { systemClock } from '../../../../kit/sys/clock.ts'
import { Server } from '../../../../resources/server/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud, type Person, PUBLIC_KEY } from '../../cloud.ts'

const database = useDatabase()
let cloud: Cloud
let ada: Person
let bob: Person
let server: { readonly id: string; readonly uid: string }

beforeAll(async () => {
  cloud = await openCloud(database.db)
  ada = await cloud.signUp('ada@example.com')
  bob = await cloud.signUp('bob@example.com')
  const created = await ada.send('POST', '/v1/servers', {
    body: { zone: cloud.zone, hostname: 'web', plan: 'tiny', template: 'tiny-linux', ssh_keys: [PUBLIC_KEY] },
  })
  expect(created.status, created.text).toBe(202)
  const { id } = created.body['server']
  const stored = await cloud.admin.get(Server, { namespace: accountNamespace(ada.accountId), name: id })
  server = { id, uid: stored?.metadata.uid ?? '' }
})
afterAll(() => cloud.close())

const GIBIBYTE = 2 ** 30
const moved = (transmittedBytes: number) =>
  recordReadings(
    cloud.db,
    [
      {
        epoch: `n/${server.uid}`,
        accountId: ada.accountId,
        serverId: server.id,
        serverUid: server.uid,
        serverName: 'web',
        counters: {
          ...NO_COUNTERS,
          networkTransmittedBytes: transmittedBytes,
          networkReceivedBytes: 5,
          diskWrittenBytes: 9,
          diskWriteOperations: 2,
        },
        load: { cpuMilliseconds: 1_000 + transmittedBytes * 100, memoryUsedBytes: 4_096 },
      },
    ],
    systemClock.now(),
  )

test('the series of a server ends with the step in progress, and is nobody else’s', async () => {
  await moved(7)
  const read = await ada.send('GET', `/v1/servers/${server.id}/metrics`)
  expect([read.status, read.body['period'], read.body['step_seconds'], read.body['points'].length]).toEqual([
    200,
    '1h',
    60,
    60,
  ])
  expect(read.body['points'].at(-1)).toMatchObject({
    network_transmitted_bytes: 7,
    network_received_bytes: 5,
    disk_written_bytes: 9,
    disk_write_operations: 2,
    disk_read_bytes: 0,
    cpu_seconds: null,
    memory_used_bytes: 4_096,
  })
  await moved(17)
  expect((await ada.send('GET', `/v1/servers/${server.id}/metrics`)).body['points'].at(-1)).toMatchObject({
    cpu_seconds: 1,
    memory_used_bytes: 4_096,
  })
  expect((await ada.send('GET', `/v1/servers/${server.id}/metrics?period=30d`)).body['points'].at(-1)).toMatchObject({
    network_transmitted_bytes: 17,
  })
  expect((await ada.send('GET', `/v1/servers/${server.id}/metrics?period=2h`)).status).toBe(400)
  expect((await bob.send('GET', `/v1/servers/${server.id}/metrics`)).status).toBe(404)
})

test('the month’s transfer counts what leaves beyond the allowance, by server and by day', async () => {
  await moved(2 ** 40 + 3 * GIBIBYTE)
  const month = systemClock.now().toISOString().slice(0, 7)
  const read = await ada.send('GET', '/v1/usage/network-transfer')
  expect(read.status, read.text).toBe(200)
  expect(read.body).toMatchObject({
    period_start: `${month}-01T00:00:00.000Z`,
    allowance_bytes_per_server: 2 ** 40,
    price_per_gibibyte_millicents: 1_000,
    total_transmitted_bytes: 2 ** 40 + 3 * GIBIBYTE,
    total_billable_bytes: 3 * GIBIBYTE,
    total_amount_cents: 3,
    items: [{ server_id: server.id, server_name: 'web', billable_bytes: 3 * GIBIBYTE, amount_cents: 3 }],
    daily: [{ date: systemClock.now().toISOString().slice(0, 10) }],
  })
  expect((await ada.send('GET', `/v1/usage/network-transfer?month=${month}`)).body).toEqual(read.body)
  expect((await ada.send('GET', '/v1/usage/network-transfer?month=2020-01')).body).toMatchObject({
    items: [],
    daily: [],
    total_amount_cents: 0,
  })
  expect((await ada.send('GET', '/v1/usage/network-transfer?month=2020-13')).status).toBe(400)
  expect((await bob.send('GET', '/v1/usage/network-transfer')).body).toMatchObject({ items: [] })
})
