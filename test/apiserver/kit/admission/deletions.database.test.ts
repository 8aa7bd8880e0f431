/** Deletions by kubectl of every noun, whatever operation of it runs: what runs is waited for, and refuses nothing. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AdmissionRequest } from '../../../../apiserver/kit/admission/review.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { CONTROLLERS } from '../../../../controllers/index.ts'
import { Problem } from '../../../../domain/problem.ts'
import { stepsOf } from '../../../../domain/operations.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { systemRandom as random } from '../../../../kit/sys/random.ts'
import type { KubeObject } from '../../../../kit/kube/object.ts'
import { Plan } from '../../../../resources/catalog/index.ts'
import { accountNamespace } from '../../../../resources/index.ts'
import { useDatabase } from '../../../database.ts'
import { type Cloud, openCloud } from '../../cloud.ts'
import { makeSamples } from '../../samples.ts'

const WORKER = {
  family: 'cloud_native',
  cores: 2,
  memoryMebibytes: 4_096,
  storageGibibytes: 40,
  priceMonthlyCents: 1_200,
} as const
const AT = '2026-01-01T00:00:00Z'
const database = useDatabase()
let cloud: Cloud
let namespace: string

beforeAll(async () => {
  cloud = await openCloud(database.db)
  const owner = await cloud.signUp('owner@example.com')
  namespace = accountNamespace(owner.accountId)
  const ids = await makeSamples({ cloud, owner })
  // It has no separate path.
  await cloud.admin.apply(Plan, { metadata: { name: 'worker' }, spec: WORKER })
  const path = `/v1/kubernetes-clusters/${ids['kubernetes-clusters']}/node-pools`
  const made = await owner.send('POST', path, { body: { name: 'a', plan: 'worker', count: 0 } })
  expect(made.status, made.text).toBe(202)
})
afterAll(() => cloud.close())

const operationKindsOf = (plural: string) =>
  CONTROLLERS.find(({ resource }) => resource.plural === plural)?.operationKinds ?? []
/** Kinds that customers delete. */
const DELETABLE = KINDS.filter(
  ({ resource: { scope }, verbs }) => scope === 'Namespaced' && verbs?.includes('delete') === true,
)
const DELETED = DELETABLE.filter(({ resource: { plural } }) => operationKindsOf(plural).length > 0)

/** What the deletion is refused with; undefined when it is admitted. */
async function refusalOf(kind: (typeof KINDS)[number], oldObject: KubeObject): Promise<string | undefined> {
  const { db, caches } = cloud
  // the rest is not read
  const of = oldObject.metadata.namespace
  const request = { operation: 'DELETE', object: null, oldObject, namespace: of } as unknown as AdmissionRequest
  try {
    await kind.admit({ db, caches, clock, random }, request)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error.members.reason
    throw error
  }
}

describe.each(DELETED.map((kind) => [kind.resource.kind, kind] as const))('a %s', (_name, kind) => {
  const { resource } = kind
  test('is deleted whatever operation runs, or is refused for what it would be refused for without', async () => {
    const [sample] = (await cloud.admin.list(resource, { namespace })).items
    if (sample === undefined) throw new Error(`there is no sample of ${resource.kind}`)
    const withStatus = (status: object, operation?: object): KubeObject => ({
      ...sample,
      metadata: { ...sample.metadata },
      spec: { ...(sample.spec as object), operation },
      status: { ...(sample.status as object | undefined), ...status },
    })
    const idle = withStatus({ operation: undefined })
    const without = await refusalOf(kind, idle)
    expect(without, 'of an idle one').not.toBe('operation_in_progress')
    const protectedOne = { ...idle, spec: { ...(idle.spec as object), isProtected: true } }
    const isProtectable = (await refusalOf(kind, protectedOne)) === 'protected'
    for (const operationKind of operationKindsOf(resource.plural)) {
      const stanza = { id: 'op', kind: operationKind, requestedAt: AT, deadlineAt: AT, actor: 'user:x', requestId: 'r' }
      const [step] = stepsOf(operationKind)
      const progress = { id: 'op', kind: operationKind, status: 'running', step, stepIndex: 0, stepCount: 1, error: '' }
      for (const action of ['create', 'update']) {
        const busy = withStatus({ operation: progress }, { ...stanza, arguments: { action } })
        expect([operationKind, action, await refusalOf(kind, busy)]).toEqual([operationKind, action, without])
        const both = { ...busy, spec: { ...(busy.spec as object), isProtected: true } }
        if (isProtectable) expect([operationKind, await refusalOf(kind, both)]).toEqual([operationKind, 'protected'])
      }
    }
  })
})

describe.each(DELETABLE.map((kind) => [kind.resource.kind, kind] as const))('a %s of no account', (_name, kind) => {
  test.each(['default', 'acct-nobody', accountNamespace('00000000-0000-4000-8000-000000000000')])(
    'can be deleted from %s',
    async (nowhere) => {
      const [sample] = (await cloud.admin.list(kind.resource, { namespace })).items
      if (sample === undefined) throw new Error(`there is no sample of ${kind.resource.kind}`)
      const unprotected = { ...sample, spec: { ...(sample.spec as object), isProtected: false } }
      const without = await refusalOf(kind, unprotected)
      const moved = { ...unprotected, metadata: { ...sample.metadata, namespace: nowhere } }
      expect([undefined, without]).toContain(await refusalOf(kind, moved))
    },
  )
})

test('there are such kinds', () => {
  expect(DELETED.map(({ resource }) => resource.kind)).toEqual(
    expect.arrayContaining(['Server', 'Storage', 'Network', 'Router', 'Edge', 'Backup', 'CustomImage', 'FloatingIP']),
  )
})
