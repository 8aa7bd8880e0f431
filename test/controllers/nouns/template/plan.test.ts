/** What a template becomes, and what is done for it, row by row. */
import { expect, test } from 'vitest'
import {
  type ImageObject,
  type Observed,
  plan,
  type TemplateObject,
  type ZoneUse,
} from '../../../../controllers/nouns/template/plan.ts'
import { defined } from '../../../../domain/defined.ts'
import type { TemplateSpec, TemplateStatus } from '../../../../resources/catalog/index.ts'
import type { ImageStatus } from '../../../../resources/instance/index.ts'

const NOW = new Date('2026-11-22T12:00:00Z')
type Kind = 'template.create' | 'template.copy' | 'template.delete'
interface Made extends Partial<TemplateSpec> {
  readonly kind?: Kind
  readonly args?: Readonly<Record<string, string>>
  readonly status?: Partial<TemplateStatus>
  readonly isDeleting?: boolean
  readonly isLate?: boolean
}
const template = ({ kind, args, status, isDeleting = false, isLate = false, ...spec }: Made = {}): TemplateObject =>
  ({
    metadata: { name: 'deb', uid: 'u', generation: 1, ...(isDeleting ? { deletionTimestamp: NOW.toISOString() } : {}) },
    spec: {
      zones: ['z'],
      image: { url: 'https://x.example/', checksum: 'A'.repeat(64) },
      ...spec,
      ...(kind === undefined
        ? {}
        : {
            operation: {
              id: 'op-1',
              kind,
              requestedAt: '2026-11-22T11:59:00Z',
              actor: 'user:1',
              requestId: 'r-1',
              deadlineAt: isLate ? '2026-11-22T11:59:59Z' : '2026-11-22T18:00:00Z',
              ...defined({ arguments: args }),
            },
          }),
    },
    // an operation that has begun
    status: {
      observedGeneration: 1,
      ...(kind === undefined
        ? {}
        : { operation: { id: 'op-1', kind, status: 'running', step: 'fetched', stepIndex: 1, stepCount: 2 } }),
      ...status,
    },
  }) as unknown as TemplateObject // the plan looks at nothing else
const on = (node: string, status: Partial<ImageStatus>, ageSeconds = 0): ImageObject =>
  ({
    metadata: {
      name: 'template.deb',
      namespace: `node-${node}`,
      creationTimestamp: new Date(NOW.getTime() - ageSeconds * 1_000).toISOString(),
    },
    spec: {},
    status,
  }) as ImageObject // nor here
const observed = (some: Partial<Observed> = {}): Observed => ({
  zones: { z: ['a', 'b'] },
  unknownZones: [],
  images: [],
  strays: [],
  editor: 'user:kubernetes',
  ...some,
})
const ready = { state: 'ready', sizeGibibytes: 3 } as const
const broken = { state: 'error', detail: 'wrong' } as const
const ONLINE: Partial<TemplateStatus> = { state: 'online', zones: ['z'] }

/** The actions in words. */
const summary = (root: TemplateObject, seen: Observed): string[] =>
  plan(root, seen, NOW).flatMap((action) => {
    if (action.do === 'ensure') return [`image on ${action.draft.metadata.namespace ?? ''}`]
    if (action.do === 'remove') return [`remove ${action.type.kind} ${action.key.namespace ?? ''}`.trim()]
    if (action.do === 'operation') return [`operation ${action.outcome ?? action.step}`]
    if (action.do === 'status') {
      const { state, zones = [] } = action.status as TemplateStatus
      return [[`state ${state ?? ''}`, ...zones].join(' ')]
    }
    if (action.do === 'change') return [`change ${JSON.stringify(action.patch['spec'])}`.slice(0, 27)]
    return action.do === 'finalized' ? ['finalized'] : []
  })

test.each<[string, TemplateObject, Observed, readonly string[]]>([
  ['what nodes build is there at once', template({ image: { built: 'tiny-linux' } }), observed(), ['state online']],
  ['what is fetched gets its operation', template(), observed(), ['change {"operation":{"id":"']],
  [
    'creating: every node of its zones is given the image',
    template({ kind: 'template.create' }),
    observed(),
    ['image on node-a', 'image on node-b', 'operation fetched', 'state creating'],
  ],
  [
    'creating, while one node has it',
    template({ kind: 'template.create' }),
    observed({ images: [on('a', ready), on('b', { state: 'creating' })] }),
    ['operation fetched', 'state creating'],
  ],
  [
    'creating, while one of two zones has it',
    template({ kind: 'template.create', zones: ['z', 'y'] }),
    observed({ zones: { z: ['a'], y: ['b'] }, images: [on('a', ready)] }),
    ['image on node-b', 'operation fetched', 'state creating z'],
  ],
  [
    'creating, in a zone without a node',
    template({ kind: 'template.create' }),
    observed({ zones: { z: [] } }),
    ['operation fetched', 'state creating'],
  ],
  [
    'creating, held by all: online',
    template({ kind: 'template.create' }),
    observed({ images: [on('a', ready), on('b', ready)] }),
    ['operation succeeded', 'state online z'],
  ],
  [
    'creating, refused by a node: error, and no node keeps any of it',
    template({ kind: 'template.create' }),
    observed({ images: [on('a', ready), on('b', broken)] }),
    ['remove Image node-a', 'remove Image node-b', 'operation failed', 'state error'],
  ],
  [
    'creating, in no zone: error',
    template({ kind: 'template.create' }),
    observed({ zones: {}, unknownZones: ['z'] }),
    ['operation failed', 'state error'],
  ],
  [
    'creating, cancelled: no node keeps any of it',
    template({ kind: 'template.create', args: { cancel: 'true' } }),
    observed({ images: [on('a', { state: 'creating' })] }),
    ['remove Image node-a', 'operation cancelled', 'state error'],
  ],
  [
    'creating, late: error',
    template({ kind: 'template.create', isLate: true }),
    observed({ images: [on('a', ready)] }),
    ['remove Image node-a', 'operation failed', 'state error'],
  ],
  [
    'online: a node that has joined gets it, and the zone stays offered',
    template({ status: ONLINE }),
    observed({ images: [on('a', ready)] }),
    ['image on node-b', 'state online z'],
  ],
  [
    'online: what failed on a node is tried again after a while',
    template({ status: ONLINE }),
    observed({ images: [on('a', ready), on('b', broken, 300)] }),
    ['remove Image node-b', 'state online z'],
  ],
  [
    'online: and not before',
    template({ status: ONLINE }),
    observed({ images: [on('a', ready), on('b', broken, 299)] }),
    ['state online z'],
  ],
  [
    'online: nodes of other zones keep nothing of it',
    template({ status: ONLINE }),
    observed({ images: [on('a', ready), on('b', ready), on('c', ready)], strays: [on('c', ready)] }),
    ['remove Image node-c', 'state online z'],
  ],
  [
    'error: nothing is fetched',
    template({ status: { state: 'error' } }),
    observed({ images: [on('a', ready)] }),
    ['remove Image node-a', 'state error'],
  ],
])('%s', (_why, root, seen, does) => {
  expect(summary(root, seen)).toEqual(does)
})

const copied = (more: Made = {}) =>
  template({ kind: 'template.copy', args: { zone: 'y' }, zones: ['z', 'y'], status: ONLINE, ...more })
const two = { z: ['a'], y: ['b'] }

test.each<[string, TemplateObject, Observed, readonly string[]]>([
  [
    'a copy: the nodes of the zone fetch it, and it is online meanwhile',
    copied({}),
    observed({ zones: two, images: [on('a', ready)] }),
    ['image on node-b', 'operation fetched', 'state online z'],
  ],
  [
    'a copy that is there',
    copied({}),
    observed({ zones: two, images: [on('a', ready), on('b', ready)] }),
    ['operation succeeded', 'state online y z'],
  ],
  [
    'a copy that a node refuses: the zone goes',
    copied({}),
    observed({ zones: two, images: [on('a', ready), on('b', broken)] }),
    ['change {"zones":["z"]}', 'operation fetched', 'state online z'],
  ],
  [
    'and then the operation ends',
    copied({ zones: ['z'] }),
    observed({ zones: { z: ['a'] }, images: [on('a', ready), on('b', broken)], strays: [on('b', broken)] }),
    ['remove Image node-b', 'operation failed', 'state online z'],
  ],
  [
    'a copy that was cancelled: the zone goes',
    copied({ args: { zone: 'y', cancel: 'true' } }),
    observed({ zones: two, images: [on('a', ready)] }),
    ['change {"zones":["z"]}', 'operation fetched', 'state online z'],
  ],
  [
    'and then the operation ends',
    copied({ args: { zone: 'y', cancel: 'true' }, zones: ['z'] }),
    observed({ zones: { z: ['a'] }, images: [on('a', ready)] }),
    ['operation cancelled', 'state online z'],
  ],
  [
    'a copy that is late: the zone goes',
    copied({ isLate: true }),
    observed({ zones: two, images: [on('a', ready)] }),
    ['change {"zones":["z"]}', 'operation fetched', 'state online z'],
  ],
])('%s', (_why, root, seen, does) => {
  expect(summary(root, seen)).toEqual(does)
})

const BEGINS = ['change {"operation":{"id":"']
const built = (more: Made = {}) => template({ image: { built: 'tiny-linux' }, zones: [], ...more })
const copiedBefore: Made = {
  kind: 'template.copy',
  args: { zone: 'y' },
  zones: [],
  status: {
    ...ONLINE,
    // what the plan reads of it
    operation: { id: 'op-1', status: 'failed', finishedAt: '2026-11-22T11:59:30Z' } as TemplateStatus['operation'] & {},
  },
}
const use = (newestAt: string | undefined, some: Partial<ZoneUse> = {}): Partial<Observed> => ({
  zones: two,
  uses: [{ zone: 'y', isMade: false, newestAt, ...some }],
})
const [EARLIER, LATER] = ['2026-11-22T11:59:00Z', '2026-11-22T11:59:40Z']

test.each<[string, TemplateObject, Partial<Observed>, readonly string[]]>([
  ['one that nodes build begins with the first disk', built(), use(EARLIER), BEGINS],
  ['not while no disk is made of it', built(), use(undefined), ['state online']],
  ['not when a disk of it is there', built(), use(EARLIER, { isMade: true }), ['state online y']],
  ['not in a zone that has had it', built({ status: { zones: ['y'] } }), use(EARLIER), ['state online y']],
  [
    'not in a zone that it is not for',
    built({ zones: ['z'] }),
    { ...use(EARLIER), zones: { z: [] } },
    ['state online'],
  ],
  ['not while it is on its way out', built({ isDeleting: true }), use(EARLIER), BEGINS], // of its deletion
  [
    'not again for a disk of before',
    template({ ...copiedBefore, image: { built: 'tiny-linux' } }),
    use(EARLIER),
    ['state online z'],
  ],
  ['again for a later disk', template({ ...copiedBefore, image: { built: 'tiny-linux' } }), use(LATER), BEGINS],
  [
    'one that is fetched begins when the zone is there',
    template({ zones: [], status: ONLINE }),
    { zones: two, images: [on('a', ready)] },
    BEGINS,
  ],
  [
    'not while the zone has no node',
    template({ zones: [], status: ONLINE }),
    { zones: { z: ['a'], y: [] }, images: [on('a', ready)] },
    ['state online z'],
  ],
  [
    'not where nodes have begun to fetch it',
    template({ zones: [], status: ONLINE }),
    { zones: two, images: [on('a', ready), on('b', { state: 'creating' })] },
    ['state online z'],
  ],
  [
    'not twice: nodes try again by themselves',
    template(copiedBefore),
    { zones: two, images: [on('a', ready)] },
    ['image on node-b', 'state online z'],
  ],
  [
    'not of a template that could not be made',
    template({ zones: [], status: { state: 'error' } }),
    { zones: two },
    ['state error'],
  ],
])('the first use in a zone: %s', (_why, root, seen, does) => {
  expect(summary(root, observed(seen))).toEqual(does)
})

test('the copy that starts with a first use belongs to the platform, and names the zone', () => {
  const [begun] = plan(built(), observed(use(EARLIER)), NOW)
  expect(begun).toMatchObject({
    patch: { spec: { operation: { kind: 'template.copy', actor: 'system:templates', arguments: { zone: 'y' } } } },
  })
})

const own = (more: Made = {}): TemplateObject => {
  const root = copied({ zones: [], image: { built: 'tiny-linux' }, ...more })
  const { operation } = root.spec
  return operation === undefined
    ? root
    : { ...root, spec: { ...root.spec, operation: { ...operation, actor: 'system:templates' } } }
}
const FETCHED = { image: { url: 'https://x.example/', checksum: 'A'.repeat(64) }, zones: ['z', 'y'] }

test.each<[string, TemplateObject, Partial<Observed>, readonly string[]]>([
  ['goes on while a disk is being made', own(), use(EARLIER), ['operation fetched', 'state online z']],
  [
    'has succeeded with the first disk',
    own(),
    use(undefined, { isMade: true }),
    ['operation succeeded', 'state online y z'],
  ],
  ['ends when nothing is made of it there any more', own(), use(undefined), ['operation cancelled', 'state online z']],
  ['fails with the disk', own(), use(undefined, { detail: 'no room' }), ['operation failed', 'state online z']],
  [
    'can be cancelled',
    own({ args: { zone: 'y', cancel: 'true' } }),
    use(EARLIER),
    ['operation cancelled', 'state online z'],
  ],
  ['fails when it is late', own({ isLate: true }), use(EARLIER), ['operation failed', 'state online z']],
  [
    'of an operator has nothing to do before that',
    copied({ image: { built: 'tiny-linux' } }),
    use(undefined),
    ['operation succeeded', 'state online z'],
  ],
  [
    'that a node refuses leaves the zone to the template',
    own(FETCHED),
    { zones: two, images: [on('a', ready), on('b', broken)] },
    ['operation failed', 'state online z'],
  ],
])('a copy that a first use began %s', (_why, root, seen, does) => {
  expect(summary(root, observed(seen))).toEqual(does)
})

test.each<[string, Made, Partial<Observed>, readonly string[]]>([
  ['asked for: the object goes', {}, {}, ['remove Template', 'operation removed', 'state deleting z']],
  [
    'not while a server is being made from it',
    { isDeleting: true },
    { images: [on('a', ready)], users: ['server s'] },
    ['operation removed', 'state deleting z'],
  ],
  [
    'nodes remove it first',
    { isDeleting: true },
    { images: [on('a', ready)] },
    ['remove Image node-a', 'operation removed', 'state deleting z'],
  ],
  ['it goes with the last of them', { isDeleting: true }, {}, ['operation succeeded', 'state deleting z', 'finalized']],
  [
    'late: it goes on',
    { isDeleting: true, isLate: true },
    { images: [on('a', ready)] },
    ['remove Image node-a', 'operation failed', 'state deleting z'],
  ],
])('deleting, %s', (_why, made, some, does) => {
  expect(summary(template({ kind: 'template.delete', status: ONLINE, ...made }), observed(some))).toEqual(does)
})

const [PAST, SOON] = ['2026-11-22T11:59:59Z', '2026-11-22T12:00:30Z']

test('one that is no longer usable deletes itself, once no operation runs', () => {
  const startOf = (made: Made) =>
    plan(template({ status: ONLINE, ...made }), observed({ images: [on('a', ready), on('b', ready)] }), NOW)
  expect(startOf({ unavailableAt: PAST })).toMatchObject([
    { do: 'change', patch: { spec: { operation: { kind: 'template.delete', actor: 'system:template_expiry' } } } },
  ])
  expect(startOf({ unavailableAt: SOON })).toContainEqual({ do: 'wait', seconds: 30, for: 'its end' })
  const copying: Made = { kind: 'template.copy', args: { zone: 'y' }, zones: ['z', 'y'], unavailableAt: PAST }
  expect(startOf(copying).map((action) => action.do)).not.toContain('change')
})

test('deleted with kubectl it gets its operation', () => {
  expect(summary(template({ isDeleting: true, status: ONLINE }), observed())).toEqual(['change {"operation":{"id":"'])
})
