/** What changes of networks and routers claim and do not write: only that is given back, and nothing that another
 *  change has found claimed. */
import { beforeEach, describe, expect, test } from 'vitest'
import { closeIntent, recordIntent } from '../../db/change/index.ts'
import {
  claimNetwork,
  endNetwork,
  findNetwork,
  renameNetwork,
  withdrawNetworkEnd,
  withdrawNetworkName,
} from '../../db/network/index.ts'
import {
  arrangeRouter,
  claimRouter,
  endRouter,
  findRouter,
  setNat,
  trimRouter,
  withdrawJoin,
  withdrawLeave,
  withdrawRouterEnd,
  withdrawRouterUpdate,
} from '../../db/router/index.ts'
import { Unavailable } from '../../domain/problem.ts'
import { mirrorPool } from '../../db/public-pool/index.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'
import { createAccount } from '../accounts.ts'
import { useDatabase } from '../database.ts'

const database = useDatabase()
const ZONE = 'withdrawals'
const [yes, no] = [true, false]
let accountId: string

const transaction: ReturnType<typeof database.db.transaction>['execute'] = (work) =>
  database.db.transaction().execute(work)

beforeEach(async () => {
  accountId = await createAccount(database.db)
  await transaction((tx) =>
    mirrorPool(tx, {
      ...({ id: 'edge', use: 'edge', cidr: '203.0.113.0/24', family: 'ipv4', zone: ZONE, state: 'active' } as const),
    }),
  )
})

async function makeNetwork(name = 'back') {
  const id = { accountId, networkId: newUuid(systemRandom) }
  await transaction((tx) => claimNetwork(tx, { ...id, zone: ZONE, name }, systemRandom))
  return id
}
async function makeRouter(name = 'out', networkIds: readonly string[] = []) {
  const demand = { accountId, routerId: newUuid(systemRandom), zone: ZONE, name, natEnabled: false, networkIds }
  await transaction((tx) => claimRouter(tx, demand))
  return demand
}

/** A change that is accepted and not resolved yet. */
async function open(type: 'network' | 'router', id: string, action: string): Promise<{ close(): Promise<unknown> }> {
  const operationId = newUuid(systemRandom)
  const audit = { action } as Parameters<typeof recordIntent>[1]['audit'] // nothing else of it is read
  await transaction((tx) =>
    recordIntent(tx, { operationId, accountId, resource: { type, id }, createdAt: new Date(), audit }),
  )
  return { close: () => transaction((tx) => closeIntent(tx, operationId)) }
}

describe('a deletion that was not written', () => {
  test('of a network is taken back, by the last of those that claimed it', async () => {
    const id = await makeNetwork()
    const isEnding = async () => (await findNetwork(database.db, id))?.isEnding
    const withdraw = (isDesired: boolean) => transaction((tx) => withdrawNetworkEnd(tx, id, isDesired))
    await transaction((tx) => endNetwork(tx, id))
    const other = await open('network', id.networkId, 'network.delete')
    await withdraw(no)
    expect(await isEnding()).toBe(true)
    await other.close()
    await withdraw(yes)
    expect(await isEnding()).toBe(true)
    const update = await open('network', id.networkId, 'network.update')
    await withdraw(no)
    expect(await isEnding()).toBe(false)
    await update.close()
  })

  test('of a router is taken back, by the last of those that claimed it', async () => {
    const id = await makeRouter()
    const isEnding = async () => (await findRouter(database.db, id))?.isEnding
    const withdraw = (isDesired: boolean) => transaction((tx) => withdrawRouterEnd(tx, id, isDesired))
    await transaction((tx) => endRouter(tx, id))
    const other = await open('router', id.routerId, 'router.delete')
    await withdraw(no)
    await other.close()
    await withdraw(yes)
    expect(await isEnding()).toBe(true)
    await withdraw(no)
    expect(await isEnding()).toBe(false)
  })

  test('of a router is taken back by nobody who only claims what its spec says', async () => {
    const [{ networkId }, id] = [await makeNetwork(), await makeRouter()]
    await transaction((tx) => endRouter(tx, id))
    const claim = transaction((tx) => claimRouter(tx, { ...id, networkIds: [networkId] }))
    await expect(claim).rejects.toBeInstanceOf(Unavailable)
    expect(await findRouter(database.db, id)).toMatchObject({ isEnding: true, networks: [] })
  })
})

describe('a network that was not put to a router after all', () => {
  test('leaves that router and no other', async () => {
    const [{ networkId }, one, other] = [await makeNetwork(), await makeRouter('one'), await makeRouter('other')]
    const networks = async () => (await findRouter(database.db, other))?.networks.map((each) => each.networkId)
    await transaction((tx) => arrangeRouter(tx, { ...other, joining: [networkId], leaving: [] }))
    await transaction((tx) => withdrawJoin(tx, { ...one, networkId }, no))
    expect(await networks()).toEqual([networkId])
    await transaction((tx) => withdrawJoin(tx, { ...other, networkId }, yes))
    expect(await networks()).toEqual([networkId])
    await transaction((tx) => withdrawJoin(tx, { ...other, networkId }, no))
    expect(await networks()).toEqual([])
  })

  test('does not come back to a router that it must leave, or that it is not at', async () => {
    const { networkId } = await makeNetwork()
    const [id, other] = [await makeRouter('one', [networkId]), await makeRouter('other')]
    const isLeaving = async () => (await findRouter(database.db, id))?.networks[0]?.isLeaving
    await transaction((tx) => arrangeRouter(tx, { ...id, joining: [], leaving: [networkId] }))
    await transaction((tx) => withdrawLeave(tx, { ...id, networkId }, yes))
    await transaction((tx) => withdrawLeave(tx, { ...other, networkId }, no))
    expect(await isLeaving()).toBe(true)
    await transaction((tx) => withdrawLeave(tx, { ...id, networkId }, no))
    expect(await isLeaving()).toBe(false)
    await transaction((tx) => arrangeRouter(tx, { ...id, joining: [], leaving: [networkId] }))
    await transaction((tx) => trimRouter(tx, id))
    await transaction((tx) => withdrawLeave(tx, { ...id, networkId }, no))
    expect((await findRouter(database.db, id))?.networks).toEqual([])
  })
})

describe('an update that was not written', () => {
  test('leaves a network its desired name', async () => {
    const id = await makeNetwork('first')
    const name = async () => (await findNetwork(database.db, id))?.name
    const withdraw = (desired: string | undefined) => transaction((tx) => withdrawNetworkName(tx, id, desired))
    await transaction((tx) => renameNetwork(tx, id, 'second'))
    const other = await open('network', id.networkId, 'network.update')
    await withdraw('first')
    expect(await name()).toBe('second')
    await other.close()
    await withdraw('second')
    expect(await name()).toBe('second')
    await withdraw('first')
    expect(await name()).toBe('first')
  })

  test('leaves a router the address outside that another one was promised', async () => {
    const id = await makeRouter()
    const found = async () => findRouter(database.db, id)
    const withdraw = (natEnabled: boolean) =>
      transaction((tx) => withdrawRouterUpdate(tx, id, { name: 'out', natEnabled }))
    await transaction((tx) => setNat(tx, { ...id, natEnabled: true }))
    const address = (await found())?.publicAddress
    expect(address).toBeDefined()
    const other = await open('router', id.routerId, 'router.update')
    await withdraw(false)
    await other.close()
    await withdraw(true)
    expect(await found()).toMatchObject({ natEnabled: true, publicAddress: address })
    await withdraw(false)
    expect(await found()).toMatchObject({ natEnabled: false, publicAddress: undefined })
  })
})
