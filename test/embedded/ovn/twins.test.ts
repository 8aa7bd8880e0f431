import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, expect, it } from 'vitest'
import { openAddressTable } from '../../../embedded/ovn/public-addresses.ts'
import { type Destination, openTwins, type Twins } from '../../../embedded/ovn/twins.ts'
import { eventually } from '../../eventually.ts'

const open: Twins[] = []
afterEach(() => {
  for (const twins of open.splice(0)) twins.close()
})
/** Answers each connection with where it is to go. */
async function start(ports: readonly number[]): Promise<Twins> {
  const say = (socket: Socket, { host, port }: Destination) => void socket.end(`${host} ${port}`)
  const twins = await openTwins(ports, say)
  if (twins === undefined) throw new Error('no network of the loopback is free')
  open.push(twins)
  return twins
}
const ask = async (host: string, port = 0): Promise<string> => {
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect')
    return await text(socket)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  }
}

it('point to the existing servers, and to no others', async () => {
  const twins = await start([30_022, 30_080])
  const port = twins.ports.get(30_080)
  twins.follow(new Set(['198.18.3.4', '198.18.3.5']))
  await eventually('a twin', async () => (await ask(`${twins.loopback}.3.4`, port)) === '198.18.3.4 30080')
  expect(await ask(`${twins.loopback}.3.5`, twins.ports.get(30_022))).toBe('198.18.3.5 30022')
  expect(await ask(`${twins.loopback}.3.6`, port)).toBe('ECONNREFUSED')
  twins.follow(new Set(['198.18.3.5']))
  await eventually('its end', async () => (await ask(`${twins.loopback}.3.4`, port)) === 'ECONNREFUSED')
  expect(await ask(`${twins.loopback}.3.5`, port)).toBe('198.18.3.5 30080')
})

it('two clouds have separate networks, and leave them to the next', async () => {
  const [first, second] = [await start([30_022]), await start([30_022])]
  expect(first.loopback).not.toBe(second.loopback)
  first.close()
  await eventually('the network to be free', async () => {
    const next = await openTwins([], () => {})
    next?.close()
    return next?.loopback === first.loopback
  })
})

it('a port that is taken on this machine is another one of the twins', async () => {
  const taken = createServer().listen(30_443, '0.0.0.0')
  await once(taken, 'listening')
  const { ports } = await start([30_443])
  expect([...ports]).toEqual([[30_443, 40_443]])
  taken.close()
})

it('addresses are followed as the database has them', () => {
  const table = openAddressTable()
  const take = (...data: readonly unknown[]) => table.take(JSON.stringify({ data, headings: ['row', 'action', 'x'] }))
  take(['a', 'initial', '02:00:00:00:00:01 198.18.0.5 2001:2::1'], ['b', 'initial', ['set', []]])
  expect([...table.addresses()]).toEqual(['198.18.0.5'])
  take(['a', 'old', '02:00:00:00:00:01 198.18.0.5'], ['', 'new', '02:00:00:00:00:01 198.18.0.6'])
  take(['c', 'insert', ['map', [['198.18.2.7:80', '10.0.0.2:80']]]])
  take(['d', 'insert', '10.198.18.5'])
  expect([...table.addresses()]).toEqual(['198.18.0.6', '198.18.2.7'])
  take(['a', 'delete', '02:00:00:00:00:01 198.18.0.6'])
  expect([...table.addresses()]).toEqual(['198.18.2.7'])
  table.clear()
  expect(table.addresses().size).toBe(0)
})
