/** What kubectl asks for is refused with what would be claimed for it later, and nothing of that stays. */
import { beforeEach, expect, test } from 'vitest'
import { admissionOf } from '../../../apiserver/kit/admission/changes.ts'
import { devClusterChanges } from '../../../changes/dev-cluster.ts'
import { listQuotas } from '../../../db/account/index.ts'
import { systemClock as clock } from '../../../kit/sys/clock.ts'
import { systemRandom as random } from '../../../kit/sys/random.ts'
import { Plan, Zone } from '../../../resources/catalog/index.ts'
import { DevCluster } from '../../../resources/dev-cluster/index.ts'
import { accountNamespace } from '../../../resources/index.ts'
import { createAccount, giveStanding } from '../../accounts.ts'
import { worldWith } from '../../changes/world.ts'
import { useDatabase } from '../../database.ts'
import { PUBLIC_KEY } from '../cloud.ts'

const database = useDatabase()
let accountId: string

beforeEach(async () => {
  accountId = await createAccount(database.db)
  await giveStanding(database.db, accountId)
})

const object = (kind: string, name: string, spec: object) => ({
  apiVersion: 'svccloud.dev/v1alpha1',
  kind,
  metadata: { name },
  spec,
  status: { hasPrivateNetworks: true, builtTemplates: ['dev-cluster'] },
})
const plan = (name: string, cores: number) =>
  [Plan, object('Plan', name, { cores, memoryMebibytes: 4_096, storageGibibytes: 20 })] as const
const WORLD = worldWith([
  [Zone, object('Zone', 'dev', { region: 'eu', isClosed: false })],
  plan('one', 1),
  plan('huge', 512),
])
const caches = {
  of: (type: Parameters<typeof WORLD.find>[0]) => ({
    get: (key: Parameters<typeof WORLD.find>[1]) => WORLD.find(type, key),
    list: () => WORLD.list(type),
  }),
}

const made = (name: string) =>
  admissionOf(devClusterChanges).create?.(
    // the members that rules use
    { db: database.db, caches, clock, random } as unknown as Parameters<
      NonNullable<ReturnType<typeof admissionOf>['create']>
    >[0],
    {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'DevCluster',
      metadata: { name: 'one', namespace: accountNamespace(accountId) },
      spec: DevCluster.spec.parse({
        zone: 'dev',
        name: 'one',
        plan: name,
        version: '1.36',
        sshKeys: [PUBLIC_KEY],
      }),
    },
  )

test.each([
  ['one', 'no_capacity'],
  ['huge', 'quota_exceeded'],
])('a dev cluster of the plan %s, whose server has no room, is refused: %s', async (name, reason) => {
  await expect(made(name)).rejects.toMatchObject({ members: { reason } })
  expect((await listQuotas(database.db, accountId)).filter(({ used }) => used > 0)).toEqual([])
})
