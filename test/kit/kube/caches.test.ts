import { expect, test } from 'vitest'
import { openCaches } from '../../../kit/kube/caches.ts'
import { Namespace } from '../../../kit/kube/object.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { Child, NAMESPACE, openWorld, Parent } from '../world.ts'

test(
  'everyone who asks for a kind shares one reflector, also when ' + 'asked late; only what was selected is held',
  async () => {
    const world = await openWorld()
    await world.settled(world.admin.create(Namespace, { metadata: { name: 'other' }, spec: {} }))
    for (const namespace of [NAMESPACE, 'other'])
      await world.settled(
        world.admin.create(Child, { metadata: { namespace, name: 'c' }, spec: { parent: 'p', index: 0 } }),
      )
    const lists: string[] = []
    const { store, clock } = world.join('member', (serve) => (request) => {
      if (!request.path.includes('watch=')) lists.push(request.path.split('?')[0] ?? '')
      return serve(request)
    })
    const caches = openCaches({
      store,
      clock,
      random: world.scheduler.random,
      log: silentLog,
      registry: openRegistry({ isProcessWide: false }),
      selection: { namespace: NAMESPACE },
    })
    const stop = new AbortController()

    expect(caches.of(Child)).toBe(caches.of(Child))
    expect(caches.known(Parent)).toBeUndefined()
    caches.start(stop.signal)
    expect(caches.isReady()).toBe(false)
    await world.settled(caches.ready())
    const namespaces = caches.of(Namespace)
    await world.settled(caches.ready())

    expect(
      caches
        .of(Child)
        .list()
        .map(({ metadata }) => metadata.namespace),
    ).toEqual([NAMESPACE])
    expect(namespaces.get({ name: 'other' })).toBeDefined()
    expect(lists).toEqual([`/apis/kit.svccloud.example/v1/namespaces/${NAMESPACE}/children`, '/api/v1/namespaces'])
    stop.abort()
  },
)
