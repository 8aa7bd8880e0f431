/** Somebody deletes a namespace, or takes finalizers, without other faults: the guest goes on and its disk stays. In a
 *  world in which Kubernetes does not ask, they end, and that is seen. */
import { expect, it } from 'vitest'
import { Namespace } from '../../kit/kube/object.ts'
import { accountNamespace } from '../../resources/index.ts'
import { nodeNamespace } from '../../resources/instance/index.ts'
import { FINALIZED, HELD_BY_HOSTS, isRefused } from './accidents.ts'
import { useConnection } from './connection.ts'
import { type Life, live, MINUTE_MILLISECONDS, serverNamed } from './life.ts'
import { putBack } from './restores.ts'

const connection = useConnection()
const inWorld = (options: Parameters<typeof live>[1], life: (life: Life) => Promise<void>) =>
  live(connection(), { ...options, hasAccidents: true }, life)

/** Where the one guest runs, and how many disks are on hosts. */
const whatRuns = ({ world: { hosts } }: Life) => ({
  guests: hosts.flatMap(({ name, machine }) => machine.running().map(() => name)),
  disks: hosts.flatMap(({ volumes }) => [...volumes.keys()]).length,
})
/** An event of the world: time passes until it is over. */
async function event<T>({ pass }: Life, promise: Promise<T>): Promise<T> {
  let isOver = false
  void promise.finally(() => void (isOver = true)).catch(() => {})
  await pass(MINUTE_MILLISECONDS, () => isOver)
  return promise
}

async function started(life: Life) {
  const { json } = await life.send('POST', '/v1/servers', serverNamed('web'))
  const before = whatRuns(life)
  expect(before).toMatchObject({ guests: [expect.any(String)], disks: 1 })
  return { id: String(json.server.id), node: before.guests[0] ?? '', before }
}

it('deletes no namespace of an account or of a node that is there', async () => {
  const violations = await inWorld({}, async (life) => {
    const { node } = await started(life)
    for (const name of [accountNamespace(life.account.id), nodeNamespace(node)])
      expect(await event(life, isRefused(life.world.person.delete(Namespace, { name })))).toBe(true)
  })
  expect(violations).toEqual([])
})

it.each(['account', 'node'])('keeps what is in the namespace of an %s, which is taken back', async (whose) => {
  const violations = await inWorld({}, async (life) => {
    const { world, account, send, pass } = life
    const { id, node, before } = await started(life)
    const name = whose === 'account' ? accountNamespace(account.id) : nodeNamespace(node)
    await event(life, world.admin.delete(Namespace, { name }))
    await pass(5 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toEqual(before)
    const namespace = await event(life, world.admin.get(Namespace, { name }))
    expect(JSON.stringify(namespace?.status)).toContain('is deleted with its namespace')
    await event(life, world.takeBack(name))
    await pass(5 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toEqual(before)
    expect((await send('POST', '/v1/servers', serverNamed('db'))).status).toBe(202)
    expect((await send('DELETE', `/v1/servers/${id}`)).status).toBe(202)
    await pass(5 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toMatchObject({ guests: [expect.any(String)], disks: 1 })
  })
  expect(violations).toEqual([])
})

it('gives a namespace up when all that is in it was deleted by itself', async () => {
  const violations = await inWorld({}, async (life) => {
    const { world, account, send, pass } = life
    const { id } = await started(life)
    await event(life, world.admin.delete(Namespace, { name: accountNamespace(account.id) }))
    await pass(MINUTE_MILLISECONDS)
    expect((await send('DELETE', `/v1/servers/${id}`)).status).toBe(202)
    await pass(15 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toEqual({ guests: [], disks: 0 })
    expect((await send('POST', '/v1/servers', serverNamed('db'))).status).toBe(202)
    expect(whatRuns(life).disks).toBe(1)
  })
  expect(violations).toEqual([])
})

it('finds that the guest ends with the namespace where nobody is asked', async () => {
  await inWorld({ without: 'asking' }, async (life) => {
    await started(life)
    await event(life, life.world.person.delete(Namespace, { name: accountNamespace(life.account.id) }))
    await life.pass(5 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toEqual({ guests: [], disks: 0 })
  })
})

const takeFinalizers = async (life: Life): Promise<readonly boolean[]> => {
  const { admin, person } = life.world
  const refused: boolean[] = []
  for (const type of FINALIZED) {
    const { items } = await event(life, admin.list(type))
    for (const { metadata } of items) {
      const key = { namespace: metadata.namespace ?? '', name: metadata.name }
      refused.push(await event(life, isRefused(person.patch(type, key, { metadata: { finalizers: null } }))))
      if (HELD_BY_HOSTS.includes(type)) refused.push(await event(life, isRefused(person.delete(type, key))))
    }
  }
  return refused
}

it('takes no finalizer from what is there, and deletes nothing that hosts hold', async () => {
  const violations = await inWorld({}, async (life) => {
    const { before } = await started(life)
    const refused = await takeFinalizers(life)
    expect(refused.length).toBe(6)
    expect(refused).not.toContain(false)
    await life.pass(5 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toEqual(before)
  })
  expect(violations).toEqual([])
})

it('refuses the same once Kubernetes was set up anew', async () => {
  const violations = await inWorld({}, async (life) => {
    await started(life)
    void putBack(life.world.restore, { kubernetes: 'empty' })
    await life.pass(5 * MINUTE_MILLISECONDS)
    expect((await life.send('POST', '/v1/servers', serverNamed('db'))).status).toBe(202)
    const before = whatRuns(life)
    expect(before).toMatchObject({ guests: [expect.any(String), expect.any(String)], disks: 2 })
    const refused = await takeFinalizers(life)
    expect(refused.length).toBe(6)
    expect(refused).not.toContain(false)
    await life.pass(5 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toEqual(before)
  })
  expect(violations).toEqual([])
})

it('keeps guest and disk whose objects are missing without an order to the host', async () => {
  const violations = await inWorld({ without: 'asking' }, async (life) => {
    const { before } = await started(life)
    await takeFinalizers(life)
    await life.pass(15 * MINUTE_MILLISECONDS)
    expect(whatRuns(life)).toEqual(before)
  })
  expect(violations).toEqual([])
})
