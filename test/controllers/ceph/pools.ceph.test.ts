/** How pools keep their data, set at a real cluster of three hosts in two racks, by a client with the rights that the
 *  documentation gives it. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type CephPools, openCephPools } from '../../../controllers/ceph/pools.ts'
import { StorageRefused } from '../../../controllers/ceph/program.ts'
import { useCeph } from '../../ceph.ts'
import { eventually } from '../../eventually.ts'

const cluster = useCeph(['rack-0', 'rack-0', 'rack-1'])
const CLIENT = 'svccloud-policy'
const CAPS = [
  'mon',
  'allow r, allow command "osd pool set", allow command "osd crush rule create-replicated"',
  'mgr',
  'allow command "pg dump"',
]
let pools: CephPools
let name: string

beforeAll(async () => {
  const { ceph } = cluster
  const key = (await ceph.administer('auth', 'get-or-create-key', `client.${CLIENT}`, ...CAPS)).trim()
  pools = openCephPools({ monitors: ceph.monitors, username: CLIENT, key })
  name = `${(await ceph.administer('fsid')).trim()}.${ceph.pool}`
})

const stateOf = async () => (await pools.read([name, 'another.pool']))[0]
const placed = () =>
  eventually('every copy to be in its place', async () => {
    const state = await stateOf()
    return state?.misplacedGroups === 0 ? state : undefined
  })
/** Of each part of the pool, the daemons that have a copy. */
async function copies(): Promise<readonly (readonly number[])[]> {
  const { ceph } = cluster
  const answer = JSON.parse(await ceph.administer('pg', 'ls-by-pool', ceph.pool, '--format', 'json'))
  return (answer.pg_stats ?? answer).map(({ acting }: { acting: number[] }) => acting)
}

describe('how a pool keeps its data', () => {
  it('is set while it holds some, which survive the loss of a host then', { timeout: 240_000 }, async () => {
    const { ceph } = cluster
    expect(await stateOf()).toMatchObject({ name, replicas: 1, failureDomain: 'osd', hosts: 3, racks: 2 })
    await ceph.rbd('create', '--size', '1M', `${ceph.pool}/disk`)
    await ceph.rbd('image-meta', 'set', `${ceph.pool}/disk`, 'mark', 'kept')

    await pools.set([name], { replicas: 3, failureDomain: 'host' })
    expect(await placed()).toMatchObject({ replicas: 3, failureDomain: 'host' })
    expect((await copies()).map((each) => new Set(each).size)).toEqual(Array(8).fill(3))
    await pools.set([name], { replicas: 3, failureDomain: 'host' }) // free when it is so

    await pools.set([name], { replicas: 2, failureDomain: 'rack' })
    expect(await placed()).toMatchObject({ replicas: 2, failureDomain: 'rack' })
    const alone = (await copies()).map((each) => each.filter((daemon) => daemon === 2).length) // in its rack
    expect(alone).toEqual(Array(8).fill(1))

    await ceph.administer('osd', 'down', '2', '--definitely-dead')
    expect((await ceph.rbd('image-meta', 'get', `${ceph.pool}/disk`, 'mark')).trim()).toBe('kept')
  })

  it('stays as it is where there are too few hosts or racks for the copies', async () => {
    const before = await stateOf()
    const refusal = pools.set([name], { replicas: 3, failureDomain: 'rack' })
    await expect(refusal).rejects.toThrow(/of kind rack .* 3 copies need as many/)
    await expect(refusal).rejects.toBeInstanceOf(StorageRefused)
    expect(await stateOf()).toMatchObject({ replicas: before?.replicas, failureDomain: before?.failureDomain })
  })

  it('is not set by a client that may only use it', async () => {
    const { ceph } = cluster
    const key = (await ceph.administer('auth', 'get-key', `client.${ceph.user}`)).trim()
    const client = openCephPools({ monitors: ceph.monitors, username: ceph.user, key })
    await expect(client.set([name], { replicas: 1, failureDomain: 'host' })).rejects.toThrow(/refuses/)
  })
})
