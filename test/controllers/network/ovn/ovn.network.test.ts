/** How rows come into the northbound database, on a real one: by owner, at the cost of what has changed, past crashes,
 *  other writers and strangers. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openOvn } from '../../../../controllers/network/ovn/open-ovn.ts'
import type { Ovn } from '../../../../controllers/network/ovn/ovn.ts'
import { refer, type Row, rowId } from '../../../../controllers/network/ovn/row.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { openOvnDatabases, type OvnDatabases } from './ovn-databases.ts'

const ZONE = 'z1'
const NETWORK = 'Network/n1'
const SERVER = 'Server/s1'
const PATIENCE = { interval: 50 }

let databases: OvnDatabases
let ovn: Ovn
const writers = new Set<Ovn>()
const writer = () => {
  const opened = openOvn({ northbound: databases.remote, southbound: databases.remote, clock, log })
  writers.add(opened)
  return opened
}

beforeEach(async () => {
  databases = await openOvnDatabases()
  await databases.northbound().transact('OVN_Northbound', [{ op: 'insert', table: 'NB_Global', row: {} }])
  await databases.southbound({ op: 'insert', table: 'SB_Global', row: {} })
  ovn = writer()
})
afterEach(async () => {
  for (const one of writers) one.close()
  writers.clear()
  await databases.close()
})

const SWITCH = { table: 'Logical_Switch', key: 'net' } as const
const switchRow: Row = { ...SWITCH, columns: { name: 'net' } }
const port = (name: string, address = '10.0.0.2'): Row => ({
  table: 'Logical_Switch_Port',
  key: name,
  parent: { ...SWITCH, column: 'ports' },
  columns: { name, addresses: [`52:54:00:00:00:01 ${address}`] },
})
const names = (name: string): Row => ({
  table: 'DNS',
  key: name,
  parent: { ...SWITCH, column: 'dns_records' },
  columns: { records: { [name]: '10.0.0.2' } },
})
const group: Row = {
  table: 'Port_Group',
  key: 'group',
  columns: { name: 'group', ports: refer({ table: 'Logical_Switch_Port', key: 'p1' }) },
}
const network = (...rows: readonly Row[]) => ovn.apply({ zone: ZONE, owner: NETWORK, rows })
const server = (...rows: readonly Row[]) => ovn.apply({ zone: ZONE, owner: SERVER, rows })
const sorted = async (table: string, column = 'name') =>
  (await databases.rowsOf(table)).map((row) => String(row[column])).sort()
const transact = (...operations: readonly Readonly<Record<string, unknown>>[]) =>
  databases.northbound().transact('OVN_Northbound', operations)
const is = (row: { readonly table: Row['table']; readonly key: string }) => ({
  table: row.table,
  where: [['_uuid', '==', ['uuid', rowId(ZONE, row)]]],
})

test('where an owner forwards to is read from the database', async () => {
  const router = { table: 'Logical_Router', key: 'edge' } as const
  const columns = { type: 'dnat', external_ip: '203.0.113.9', logical_ip: '198.51.100.7' }
  const forwarding: Row = { table: 'NAT', key: 'floating', parent: { ...router, column: 'nat' }, columns }
  await network(switchRow, { ...router, columns: { name: 'edge' } })
  await server(port('p1'), forwarding)
  expect(await ovn.forwardsTo({ zone: ZONE, owner: SERVER })).toEqual(['198.51.100.7'])
  expect(await ovn.forwardsTo({ zone: ZONE, owner: NETWORK })).toEqual([])
})

test('the rows of an owner are added, changed and removed by themselves', async () => {
  await network(switchRow)
  await server(port('p1'), port('p2'), names('web'), group)
  expect(await sorted('Logical_Switch_Port')).toEqual(['p1', 'p2'])
  expect(await ovn.ownersOfMac(ZONE, '52:54:00:00:00:01')).toEqual([SERVER])
  expect(await ovn.ownersOfMac(ZONE, '52:54:00:00:00:02')).toEqual([])
  expect((await databases.rowsOf('Port_Group'))[0]?.['ports']).toEqual([
    'uuid',
    rowId(ZONE, { table: 'Logical_Switch_Port', key: 'p1' }),
  ])
  await server(port('p1', '10.0.0.9'))
  expect(await sorted('Logical_Switch_Port', 'addresses')).toEqual(['52:54:00:00:00:01 10.0.0.9'])
  expect(await sorted('DNS')).toEqual([])
  expect(await sorted('Logical_Switch')).toEqual(['net'])
  await server()
  expect(await sorted('Logical_Switch_Port')).toEqual([])
  await network()
  expect(await sorted('Logical_Switch')).toEqual([])
})

test('what is so already is not written again, by the same process or the next', async () => {
  await network(switchRow)
  await server(port('p1'), names('web'), group)
  const version = async () =>
    (await Promise.all(['Logical_Switch', 'Logical_Switch_Port', 'DNS', 'Port_Group'].map(databases.rowsOf)))
      .flat()
      .map((row) => row['_version'])
  const before = await version()
  const { sequence } = await server(port('p1'), names('web'), group)
  expect(await server(port('p1'), names('web'), group)).toEqual({ sequence })
  ovn.close()
  ovn = writer()
  await network(switchRow)
  await server(port('p1'), names('web'), group)
  expect(await version()).toEqual(before)
})

test('a removed row has the same sequence in every report, so that hosts can reach it', async () => {
  await network(switchRow)
  await server(port('p1'))
  const { sequence } = await server()
  for (let again = 0; again < 3; again++) {
    await expect
      .poll(async () => Number((await databases.rowsOf('NB_Global'))[0]?.['nb_cfg'] ?? 0), PATIENCE)
      .toBeGreaterThanOrEqual(sequence)
    expect(await server()).toEqual({ sequence })
  }
  ovn.close()
  ovn = writer()
  await network(switchRow)
  const next = await server()
  expect(await server()).toEqual(next)
})

test('what needs the rows of another owner waits for them, and writes nothing before', async () => {
  await expect(server(port('p1'))).rejects.toThrow('is not available')
  expect(await sorted('Logical_Switch_Port')).toEqual([])
  await network(switchRow)
  await server(port('p1'))
  expect(await sorted('Logical_Switch_Port')).toEqual(['p1'])
})

test('a row moves from one holder to another in one transaction', async () => {
  const other: Row = { table: 'Logical_Switch', key: 'other', columns: { name: 'other' } }
  await network(switchRow, other)
  await server(port('p1'))
  await server({ ...port('p1'), parent: { table: 'Logical_Switch', key: 'other', column: 'ports' } })
  const id = ['uuid', rowId(ZONE, { table: 'Logical_Switch_Port', key: 'p1' })]
  const held = Object.fromEntries((await databases.rowsOf('Logical_Switch')).map((row) => [row['name'], row['ports']]))
  expect(held).toEqual({ net: ['set', []], other: id })
})

test('what others do to our rows is put right, and theirs stay', async () => {
  await network(switchRow)
  await server(port('p1'), names('web'), group)
  await transact({ op: 'insert', table: 'Logical_Switch', row: { name: 'somebody-elses' } })
  const isRight = async () => {
    await expect
      .poll(
        async () => [
          await sorted('Logical_Switch_Port', 'addresses'),
          (await databases.rowsOf('DNS'))[0]?.['external_ids'] !== undefined &&
            String((await databases.rowsOf('Logical_Switch')).find((row) => row['name'] === 'net')?.['dns_records']),
          String((await databases.rowsOf('Port_Group'))[0]?.['ports']),
        ],
        PATIENCE,
      )
      .toEqual([
        ['52:54:00:00:00:01 10.0.0.2'],
        `uuid,${rowId(ZONE, { table: 'DNS', key: 'web' })}`,
        `uuid,${rowId(ZONE, { table: 'Logical_Switch_Port', key: 'p1' })}`,
      ])
    expect(await sorted('Logical_Switch')).toEqual(['net', 'somebody-elses'])
  }
  await isRight()
  const own = { table: 'Logical_Switch_Port', key: 'p1' } as const
  await transact({ op: 'update', ...is(own), row: { addresses: 'unknown' } })
  await isRight()
  await transact({ op: 'update', ...is(own), row: { external_ids: ['map', []], addresses: 'unknown' } })
  await isRight()
  await transact({ op: 'update', ...is(SWITCH), row: { ports: ['set', []], dns_records: ['set', []] } })
  await isRight()
  await transact({ op: 'delete', ...is(SWITCH) })
  await isRight()
})

test('after an outage of the database everything is compared again', async () => {
  await network(switchRow)
  await server(port('p1'))
  await databases.restart()
  await transact({ op: 'delete', ...is(SWITCH) })
  await expect.poll(() => sorted('Logical_Switch_Port'), PATIENCE).toEqual(['p1'])
  expect(await sorted('Logical_Switch')).toEqual(['net'])
  await server(port('p2'))
  expect(await sorted('Logical_Switch_Port')).toEqual(['p2'])
})

test('of two writers the later one writes, and the one before not over it', async () => {
  await network(switchRow)
  await server(port('p1', '10.0.0.2'))
  const later = writer()
  await later.apply({ zone: ZONE, owner: SERVER, rows: [port('p1', '10.0.0.3')] })
  await expect(server(port('p1', '10.0.0.4'))).rejects.toThrow('another process writes')
  expect(await sorted('Logical_Switch_Port', 'addresses')).toEqual(['52:54:00:00:00:01 10.0.0.3'])
})

test('two writers at the same time leave no row twice', async () => {
  const other = writer()
  const rows = [switchRow, ...Array.from({ length: 20 }, (_, index) => port(`p${index}`))]
  const write = (one: Ovn) => one.apply({ zone: ZONE, owner: NETWORK, rows }).catch(() => undefined)
  await Promise.all([write(ovn), write(other), write(ovn), write(other)])
  expect(await sorted('Logical_Switch')).toEqual(['net'])
  expect(await databases.rowsOf('Logical_Switch_Port')).toHaveLength(20)
})

test('a name that somebody else has is reported, and stops nobody else', async () => {
  await network(switchRow)
  await transact(
    { op: 'insert', table: 'Logical_Switch_Port', 'uuid-name': 'theirs', row: { name: 'p1' } },
    { op: 'insert', table: 'Logical_Switch', row: { name: 'their', ports: ['named-uuid', 'theirs'] } },
  )
  const [one, two] = await Promise.allSettled([
    server(port('p1')),
    ovn.apply({ zone: ZONE, owner: 'Server/s2', rows: [port('p2')] }),
  ])
  expect(one).toMatchObject({
    status: 'rejected',
    reason: { message: expect.stringContaining('constraint violation') },
  })
  expect(two.status).toBe('fulfilled')
})

test('rows from before there were owners go when the public network is written', async () => {
  const marks = ['map', [['svccloud-zone', ZONE]]]
  await transact(
    { op: 'insert', table: 'Logical_Switch_Port', 'uuid-name': 'p', row: { name: 'p1', external_ids: marks } },
    { op: 'insert', table: 'Logical_Switch', row: { name: 'net', ports: ['named-uuid', 'p'], external_ids: marks } },
  )
  await ovn.apply({ zone: ZONE, owner: `PublicNetwork/${ZONE}`, rows: [switchRow, port('p1')] })
  expect(await sorted('Logical_Switch')).toEqual(['net'])
  expect((await databases.rowsOf('Logical_Switch_Port')).map((row) => row['_uuid'])).toEqual([
    ['uuid', rowId(ZONE, { table: 'Logical_Switch_Port', key: 'p1' })],
  ])
})

test('the sequence says what nodes have installed, and is raised once a second at most', async () => {
  const at = async () => Number((await databases.rowsOf('NB_Global'))[0]?.['nb_cfg'])
  const node = (name: string, nb_cfg: number) =>
    databases.southbound({ op: 'insert', table: 'Chassis_Private', row: { name, nb_cfg } })
  expect(await ovn.installed(['h1'])).toBeUndefined()
  await network(switchRow)
  const answers = []
  for (let time = 0; time < 30; time++) answers.push(await server(port('p1', `10.0.0.${time + 2}`)))
  expect(await at()).toBeLessThan(30)
  const last = answers.at(-1)?.sequence ?? 0
  await expect.poll(at, PATIENCE).toBeGreaterThanOrEqual(last)
  await node('h1', last)
  await node('h2', last - 1)
  await databases.southbound({ op: 'update', table: 'SB_Global', where: [], row: { nb_cfg: last } })
  await expect.poll(() => ovn.installed(['h1']), PATIENCE).toBe(last)
  expect(await ovn.installed(['h1', 'h2'])).toBe(last - 1)
  expect(await ovn.installed([])).toBe(last)
  expect(await ovn.installed(['h1', 'h3'])).toBeUndefined()
})
