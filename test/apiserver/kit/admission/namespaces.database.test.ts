/** Namespaces that somebody deletes, and objects in those of hosts: nothing is deleted with them. */
import { describe, expect, test } from 'vitest'
import { Namespace } from '../../../../kit/kube/object.ts'
import { newUuid, systemRandom as random } from '../../../../kit/sys/random.ts'
import { accountNamespace, RESOURCES } from '../../../../resources/index.ts'
import { BackupJob } from '../../../../resources/backup-job/index.ts'
import { Image, Instance, Volume } from '../../../../resources/instance/index.ts'
import { ManagedMachine } from '../../../../resources/managed-machine/index.ts'
import { Node, type NodeSpec } from '../../../../resources/node/index.ts'
import { Server } from '../../../../resources/server/index.ts'

import { AT, refusalOf, useWorld } from './world.ts'

const world = useWorld()

describe('a namespace that somebody deletes', () => {
  const isLeaving = async () =>
    (await world.platform.get(Server, { namespace: world.namespace, name: 'web' }))?.metadata.deletionTimestamp
  const conditions = async () => {
    const found = await world.platform.get(Namespace, { name: world.namespace })
    return (found?.status as { conditions?: { type: string; message: string }[] } | undefined)?.conditions ?? []
  }
  const failure = async () =>
    (await conditions()).find(({ type }) => type === 'NamespaceDeletionContentFailure')?.message
  /** As when the webhook was switched off for a moment. */
  const deletePastWebhook = () => world.platform.delete(Namespace, { name: world.namespace })
  const letGo = async () => {
    await world.remove()
    await world.edit({ metadata: { finalizers: null } }, world.platform)
  }

  test('is kept as long as its account or its node is there', async () => {
    const ofNobody = accountNamespace(newUuid(random))
    await world.platform.create(Node, { metadata: { name: 'has-namespace' }, spec: { zone: 'z1' } as NodeSpec })
    for (const name of [ofNobody, 'node-has-namespace', 'node-of-nobody', 'else'])
      await world.platform.create(Namespace, { metadata: { name }, spec: {} })
    await expect.poll(() => world.caches.of(Node).get({ name: 'has-namespace' })).toBeDefined()
    for (const name of [world.namespace, 'node-has-namespace'])
      expect(await refusalOf(world.grace.delete(Namespace, { name }))).toContain('The namespace belongs to ')
    for (const name of [ofNobody, 'node-of-nobody', 'else']) await world.grace.delete(Namespace, { name })
  })

  test('takes nothing with it, says so, and goes when all was deleted by itself', async () => {
    await world.standing('started')
    await deletePastWebhook()
    await expect.poll(failure).toContain('Nothing of a customer is deleted with its namespace.')
    expect(await isLeaving()).toBeUndefined()
    await letGo()
    await expect
      .poll(() => world.platform.get(Namespace, { name: world.namespace }), { timeout: 60_000 })
      .toBeUndefined()
    expect(await world.audited()).toEqual([])
  })

  test('is taken back with all that was in it', async () => {
    const { metadata } = await world.standing('started')
    await deletePastWebhook()
    await expect.poll(failure).toBeDefined()
    const finalize = {
      method: 'PUT' as const,
      path: `/api/v1/namespaces/${world.namespace}/finalize`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: world.namespace }, spec: {} }),
    }
    expect((await world.core.handle(finalize, { name: 'grace@example.com', groups: ['system:masters'] })).status).toBe(
      200,
    )
    await world.grace.create(Namespace, { metadata: { name: world.namespace }, spec: {} })
    const back = await world.platform.get(Server, { namespace: world.namespace, name: 'web' })
    expect(back?.metadata).toMatchObject({ uid: metadata.uid })
    expect(back?.metadata.deletionTimestamp).toBeUndefined()
  })
})

test.each([Instance, Volume, Image, BackupJob, ManagedMachine])(
  'what hosts hold is neither changed nor deleted by people: $kind',
  async ({ plural }) => {
    const path = `/apis/svccloud.dev/v1alpha1/namespaces/node-n9/${plural}/a`
    await world.platform.create(Namespace, { metadata: { name: 'node-n9' }, spec: {} }).catch(() => {})
    world.core.engine.store.put(`svccloud.dev/${plural}`, 'node-n9/a', {
      apiVersion: 'svccloud.dev/v1alpha1',
      kind: RESOURCES.find((one) => one.plural === plural)?.kind ?? '',
      metadata: {
        name: 'a',
        namespace: 'node-n9',
        uid: newUuid(random),
        resourceVersion: '',
        creationTimestamp: AT,
        finalizers: ['svccloud.dev/held'],
      },
      spec: {},
    })
    const send = (method: 'DELETE' | 'PATCH', body?: object) =>
      world.core.handle(
        {
          method,
          path,
          headers: { 'content-type': 'application/merge-patch+json' },
          ...(body && { body: JSON.stringify(body) }),
        },
        { name: 'grace@example.com', groups: ['system:masters'] },
      )
    expect((await send('DELETE')).status).toBe(403)
    expect([403, 422]).toContain((await send('PATCH', { metadata: { finalizers: null } })).status)
    expect(world.core.engine.store.table(`svccloud.dev/${plural}`).get('node-n9/a')?.metadata).toMatchObject({
      finalizers: ['svccloud.dev/held'],
    })
  },
)
