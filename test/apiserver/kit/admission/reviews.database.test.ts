/** Reviews that the Kubernetes API does not send, or sends for its own controllers. */
import { describe, expect, test } from 'vitest'
import { type AdmissionOptions, openAdmission } from '../../../../apiserver/kit/admission/admit.ts'
import { AdmissionReview } from '../../../../apiserver/kit/admission/review.ts'
import { KINDS } from '../../../../apiserver/nouns.ts'
import { listAudit } from '../../../../db/audit/index.ts'
import { systemClock as clock } from '../../../../kit/sys/clock.ts'
import { silentLog as log } from '../../../../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace, RESOURCES } from '../../../../resources/index.ts'
import { Operation } from '../../../../resources/operation/index.ts'
import { Server } from '../../../../resources/server/index.ts'
import { PUBLIC_KEY } from '../../cloud.ts'

import { AT, PLATFORM, useWorld } from './world.ts'

const world = useWorld()

test('a caller that has not proven to be the Kubernetes API is answered, and leaves nothing behind', async () => {
  const parts = { caches: world.caches, db: world.db, clock, random, log, platformUsers: [PLATFORM], kinds: KINDS }
  const admit = openAdmission(parts)
  const review = (spec: object) =>
    AdmissionReview.parse({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: newUuid(random),
        resource: { group: 'svccloud.dev', resource: 'servers' },
        userInfo: { username: 'mallory' },
        namespace: world.namespace,
        operation: 'CREATE',
        object: {
          apiVersion: 'svccloud.dev/v1alpha1',
          kind: 'Server',
          metadata: { name: 'forged', namespace: world.namespace, uid: newUuid(random), generation: 1 },
          spec: Server.spec.parse({ sshKeys: [PUBLIC_KEY], ...spec }),
        },
      },
    }).request
  const good = { hostname: 'forged', zone: 'z1', plan: 'tiny', template: 'tiny-linux' }
  const bad = { ...good, storageGibibytes: 16_384 }
  const written = async () => [
    (await listAudit(world.db, world.accountId, { limit: 100 })).length,
    Number(
      (
        await world.db
          .selectFrom('kubernetes_request')
          .select(({ fn }) => fn.countAll<string>().as('count'))
          .where('username', '=', 'mallory')
          .executeTakeFirstOrThrow()
      ).count,
    ),
  ]
  const before = await written()
  const verdicts = async (isAuthenticated: boolean) =>
    (
      (await Promise.all([good, bad].map((spec) => admit(review(spec), { isAuthenticated })))) as {
        readonly response: { readonly allowed: boolean }
      }[]
    ).map(({ response }) => response.allowed)
  expect(await verdicts(false)).toEqual([true, false])
  expect(await written()).toEqual(before)
  expect(await verdicts(true)).toEqual([true, false])
  expect(await written(), 'the same reviews of the Kubernetes API are recorded').toEqual(before.map((one) => one + 1))
})

describe('asked past the Kubernetes API', () => {
  const FORGED = { id: 'forged', kind: 'server.start', actor: 'user:somebody' }
  const ask = (plural: string, request: object, rules: Pick<AdmissionOptions, 'areAddressesConfirmed'> = {}) => {
    const admit = openAdmission({
      caches: world.caches,
      db: world.db,
      clock,
      random,
      log,
      ...rules,
      platformUsers: [PLATFORM],
      kinds: KINDS,
    })
    const object = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Any',
      metadata: { name: 'any', namespace: world.namespace },
      spec: {},
    }
    const review = AdmissionReview.parse({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: newUuid(random),
        resource: { group: 'svccloud.dev', resource: plural },
        userInfo: { username: 'grace@example.com' },
        namespace: world.namespace,
        operation: 'CREATE',
        object,
        dryRun: true,
        ...request,
      },
    })
    return admit(review.request, { isAuthenticated: true })
  }
  const REFUSED = { response: { allowed: false } }

  test('where no mail can be sent every address counts as confirmed, of an owner who may sign in', async () => {
    const unverifiedId = await world.openAccount({ isVerified: false, hasCredit: true })
    const metadata = { name: 'mine', namespace: accountNamespace(unverifiedId), uid: newUuid(random), generation: 1 }
    const object = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Storage',
      metadata,
      spec: { zone: 'z1', title: 'd', sizeGibibytes: 1 },
    }
    const request = { namespace: metadata.namespace, object }
    const answer = async (rules: Pick<AdmissionOptions, 'areAddressesConfirmed'>) =>
      JSON.stringify(await ask('storages', request, rules))
    expect(await answer({})).toContain('email_unverified')
    expect(await answer({ areAddressesConfirmed: true })).not.toContain('email_unverified')
    await world.db
      .updateTable('app_user')
      .set({ disabled_at: new Date(AT) })
      .where('own_account_id', '=', unverifiedId)
      .execute()
    expect(await answer({ areAddressesConfirmed: true })).toContain('email_unverified')
  })

  test('one that nobody registered is refused, whatever is done with it', async () => {
    const object = { apiVersion: 'svccloud.dev/v1alpha1', kind: 'Widget', metadata: { name: 'any' }, spec: {} }
    for (const request of [
      { operation: 'CREATE' },
      { operation: 'UPDATE', oldObject: object },
      { operation: 'DELETE', object: null, oldObject: object },
      { operation: 'DELETE', userInfo: { username: 'system:serviceaccount:kube-system:namespace-controller' } },
    ])
      expect(await ask('widgets', request)).toMatchObject(REFUSED)
  })

  describe('the garbage collector', () => {
    const owned = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Any',
      metadata: {
        name: 'any',
        namespace: world.namespace,
        finalizers: ['svccloud.dev/own', 'foregroundDeletion', 'orphan'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'o' }],
        managedFields: [],
      },
      spec: {},
    }
    const username = 'system:serviceaccount:kube-system:generic-garbage-collector'
    const change = (plural: string, metadata: object, more: object = {}) =>
      ask(plural, {
        operation: 'UPDATE',
        oldObject: owned,
        object: { ...owned, metadata: { ...owned.metadata, ...metadata }, ...more },
        userInfo: { username },
      })
    const alone = { finalizers: ['svccloud.dev/own'], ownerReferences: undefined }

    test.each(RESOURCES.map(({ plural }) => plural))('ends what it began in %s', async (plural) => {
      expect(await change(plural, alone)).toMatchObject({ response: { allowed: true } })
    })

    test('changes nothing else of what the platform alone writes', async () => {
      expect(await change('databases', alone, { spec: { changed: true } })).toMatchObject(REFUSED)
      for (const metadata of [{ finalizers: [] }, { labels: { changed: 'yes' } }, { annotations: { changed: 'yes' } }])
        expect(await change('databases', { ...alone, ...metadata })).toMatchObject(REFUSED)
    })
  })

  const kept = RESOURCES.map(({ plural }) => plural).filter((plural) => plural !== Operation.plural)
  test.each(kept)('nothing in %s goes with its namespace', async (plural) => {
    const userInfo = { username: 'system:serviceaccount:kube-system:namespace-controller' }
    const oldObject = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Any',
      metadata: { name: 'any', namespace: world.namespace },
      spec: {},
    }
    expect(await ask(plural, { operation: 'DELETE', object: null, oldObject, userInfo })).toMatchObject(REFUSED)
    const leaving = { ...oldObject, metadata: { ...oldObject.metadata, deletionTimestamp: AT } }
    const allowed = { response: { allowed: true } }
    expect(await ask(plural, { operation: 'DELETE', object: null, oldObject: leaving, userInfo })).toMatchObject(
      allowed,
    )
  })

  test.each(RESOURCES.map(({ plural }) => plural))('a person cannot forge an operation in %s', async (plural) => {
    const object = {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: 'Any',
      metadata: { name: 'any', namespace: world.namespace },
      spec: { operation: FORGED },
    }
    expect(await ask(plural, { object })).toMatchObject(REFUSED)
  })

  test.each(RESOURCES.map(({ plural }) => plural))('a person cannot write the status of %s', async (plural) => {
    expect(await ask(plural, { operation: 'UPDATE', subResource: 'status' })).toMatchObject(REFUSED)
  })
})
