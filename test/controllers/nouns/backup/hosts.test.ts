import { expect, test } from 'vitest'
import { copySourcesOf } from '../../../../controllers/kit/backup-hosts.ts'
import type { Caches } from '../../../../kit/kube/caches.ts'
import { BACKUPS_FEATURE, OBJECT_BACKUPS_FEATURE, VAULT_FEATURE } from '../../../../resources/backup-job/index.ts'

const PLAIN = [BACKUPS_FEATURE]
const OBJECTS = [BACKUPS_FEATURE, OBJECT_BACKUPS_FEATURE]
const VAULT = [...OBJECTS, VAULT_FEATURE]

/** Of two zones of region r, z1 and z2, and z3 of another; each host by what it reports. */
function sourcesOf(hosts: Record<'z1' | 'z2', readonly (readonly string[])[]>, stores = ['z1', 'z2', 'z3']) {
  const zones = { z1: 'r', z2: 'r', z3: 'other' }
  const nodes = Object.entries({ ...hosts, z3: [OBJECTS] }).flatMap(([zone, all]) =>
    all.map((features, index) => ({
      metadata: { name: `${zone}-${index}` },
      spec: { zone },
      status: { state: 'ready' },
      features,
    })),
  )
  const kinds: Record<string, object> = {
    Zone: { list: () => Object.entries(zones).map(([name, region]) => ({ metadata: { name }, spec: { region } })) },
    Node: {
      list: () => nodes,
      get: ({ name }: { name: string }) => nodes.find(({ metadata }) => metadata.name === name),
    },
    NodeReport: {
      get: ({ namespace }: { namespace: string }) => ({
        spec: { features: nodes.find(({ metadata }) => namespace === `node-${metadata.name}`)?.features ?? [] },
      }),
    },
  }
  const caches = { of: ({ kind }: { kind: string }) => kinds[kind] } as unknown as Caches // what is asked of them
  return copySourcesOf(caches, { zone: 'z2', region: 'r', hasObjectStorage: (zone) => stores.includes(zone) })
}

test.each([
  ['both have object storage', [OBJECTS], [OBJECTS], undefined, ['z1']],
  ['backups of the first lie on its hosts', [PLAIN], [OBJECTS], undefined, []],
  ['one host of the first has a bucket of its operator', [OBJECTS, VAULT], [OBJECTS], undefined, []],
  ['the first has no object storage', [OBJECTS], [OBJECTS], ['z2'], []],
  ['no host of the second can use any', [OBJECTS], [PLAIN], undefined, []],
  ['the operator has named the store', [PLAIN], [[...PLAIN, 'backups-from:z1']], [], ['z1']],
  ['nobody makes backups in the first', [], [OBJECTS], undefined, []],
] as const)('whether a zone copies backups of another where %s', (_why, z1, z2, stores, expected) =>
  expect(sourcesOf({ z1, z2 }, stores === undefined ? undefined : [...stores])).toEqual(expected),
)
