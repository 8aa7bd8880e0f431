/** What an agent does for an Image, by what it finds. */
import { expect, it } from 'vitest'
import { type ImageObject, type ObservedImage, planImage } from '../../../agents/node/image/plan.ts'
import type { ImageSpec, ImageStatus } from '../../../resources/instance/index.ts'
import { NAME_TAKEN } from '../../../resources/instance/name-taken.ts'

const held = { name: 'i', sizeGibibytes: 3, path: '/i.qcow2' }
const NOTHING: ObservedImage = { held: undefined, fetching: undefined }
const made = (uid: string, state: 'made' | 'removed' = 'made') => ({ uid, state, madeFor: uid, at: '' })
const HELD: ObservedImage = { held, fetching: undefined, bytes: made('u') }

it.each<[string, Partial<ImageStatus>, boolean, ObservedImage, readonly unknown[]]>([
  ['one that is not here is fetched', {}, false, NOTHING, [{ state: 'creating', detail: 'being fetched' }, 'fetch']],
  [
    'what is being fetched is waited for',
    {},
    false,
    { held: undefined, fetching: { is: 'running' } },
    [{ state: 'creating', detail: 'being fetched' }],
  ],
  ['one that is here is reported', {}, false, HELD, [{ state: 'ready', sizeGibibytes: 3 }]],
  ['after it was noted', {}, false, { ...HELD, bytes: undefined }, ['noteMade', 'wait']],
  [
    'also in the place of one that was removed',
    {},
    false,
    { ...HELD, bytes: made('w', 'removed') },
    ['noteMade', 'wait'],
  ],
  ['that of another object stays', {}, false, { ...HELD, bytes: made('w') }, [{ state: 'error' }]],
  ['also when this one goes', {}, true, { ...HELD, bytes: made('w') }, [{ isRemoved: true }]],
  [
    'what was refused is reported with its reason',
    {},
    false,
    { held: undefined, fetching: { is: 'failed', reason: 'no' } },
    [{ state: 'error', detail: 'no' }],
  ],
  [
    'a disk that is larger than it may be says how large it is, and waits',
    {},
    false,
    { held: undefined, fetching: { is: 'failed', reason: 'too large', isFinal: true, neededGibibytes: 100 } },
    [{ state: 'creating', neededGibibytes: 100 }],
  ],
  [
    'one that may be as large by now is fetched again',
    {},
    false,
    { held: undefined, fetching: { is: 'failed', reason: 'too large', isFinal: true, neededGibibytes: 64 } },
    [{ state: 'creating', detail: 'being fetched' }, 'fetch'],
  ],
  [
    'one that is larger than any is refused',
    {},
    false,
    { held: undefined, fetching: { is: 'failed', reason: 'too large', isFinal: true, neededGibibytes: 1025 } },
    [{ state: 'error', detail: 'too large' }],
  ],
  ['and not fetched again', { state: 'error' }, false, NOTHING, []],
  ['one that goes is removed', { state: 'ready' }, true, HELD, ['remove', { isRemoved: true }]],
  ['also while it is fetched', {}, true, { held: undefined, fetching: { is: 'running' } }, ['remove', {}]],
  ['and that is said once', { state: 'ready', isRemoved: true }, true, NOTHING, []],
])('%s', (_why, status, isDeleting, observed, does) => {
  const image = {
    spec: { url: 'https://x.example/', maximumGibibytes: 64 },
    metadata: { name: 'i', uid: 'u', ...(isDeleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
    status,
  } as ImageObject // no rule looks at the rest
  expect(
    planImage(image, observed).map((action) =>
      action.do === 'effect' ? action.name : action.do === 'status' ? action.status : action.do,
    ),
  ).toMatchObject(does)
})

const DISK = { isHere: true, user: undefined }
const READ = {
  snapshot: { snapshot: { name: 'point', volume: 'v' } },
  backup: { backup: { name: 'b', sizeGibibytes: 1, accountId: '1', secretName: 'k' } },
}
const COPY_FROM = { id: 'u', host: 'h', port: 9, secretName: 's' }
const SERVE = { id: 'u', secretName: 's' }

it.each<[string, Partial<ImageSpec>, Partial<ObservedImage>, readonly unknown[]]>([
  ['of a disk it is made', { volume: 'v' }, { volume: DISK }, [{ state: 'creating' }, 'make']],
  [
    'not while a guest has the disk',
    { volume: 'v' },
    { volume: { isHere: true, user: 'g' } },
    [{ detail: 'waiting for the server to be stopped' }, 'wait'],
  ],
  [
    'not of one that is not here',
    { volume: 'v' },
    { volume: { isHere: false, user: undefined } },
    [{ detail: 'the disk is not on this host' }, 'wait'],
  ],
  [
    'a guest that came first ends the making, which begins again',
    { volume: 'v' },
    { volume: DISK, fetching: { is: 'failed', reason: 'the guest needs it' } },
    [{ state: 'creating', detail: 'the guest needs it' }, 'wait'],
  ],
  [
    'a disk that is refused is not made again',
    { volume: 'v' },
    { volume: DISK, fetching: { is: 'failed', reason: 'too large', isFinal: true } },
    [{ state: 'error', detail: 'too large' }],
  ],
  ...(['snapshot', 'backup'] as const).flatMap(
    (what): [string, Partial<ImageSpec>, Partial<ObservedImage>, unknown[]][] => {
      const spec = READ[what]
      return [
        [`of a ${what} it is made`, spec, {}, [{ state: 'creating', detail: `being made of the ${what}` }, 'read']],
        [
          `how far the ${what} is read is said`,
          spec,
          { fetching: { is: 'running', progress: '10 %' } },
          [{ state: 'creating', detail: '10 %' }],
        ],
        [
          `a ${what} that cannot be read now is waited for`,
          spec,
          { fetching: { is: 'failed', reason: 'away' } },
          [{ state: 'creating', detail: 'away' }],
        ],
        [
          `a ${what} that is lost is not`,
          spec,
          { fetching: { is: 'failed', reason: 'lost', isFinal: true } },
          [{ state: 'error', detail: 'lost' }],
        ],
      ]
    },
  ),
  ['what nobody serves yet is waited for', {}, {}, [{ state: 'creating' }]],
  ['what another node serves is copied', { copyFrom: COPY_FROM }, {}, [{ state: 'creating' }, 'copy']],
  ['what shall be served is reported and served', { serve: SERVE }, { held }, [{ state: 'ready' }, 'serve', 'wait']],
  [
    'and where is reported',
    { serve: SERVE },
    { held, serving: { id: 'u', host: 'h', port: 9 } },
    [{ state: 'ready', serving: { port: 9 } }],
  ],
  ['until it shall not', {}, { held, serving: { id: 'u', host: 'h', port: 9 } }, ['stopServing', 'wait']],
])('%s', (_why, spec, observed, does) => {
  const image = { metadata: { name: 'i', uid: 'u' }, spec, status: {} } as ImageObject // no rule looks at the rest
  expect(
    planImage(image, { ...NOTHING, ...(observed.held === undefined ? {} : HELD), ...observed }).map((action) =>
      action.do === 'effect' ? action.name : action.do === 'status' ? action.status : action.do,
    ),
  ).toMatchObject(does)
})

it('an image whose name is free again goes on, and reports that: the next failure is one as any other', () => {
  const conditions = [{ type: NAME_TAKEN, status: 'True' as const, reason: '', message: '', lastTransitionTime: '' }]
  const image = {
    metadata: { name: 'i', uid: 'u' },
    spec: { copyFrom: COPY_FROM },
    status: { state: 'error', conditions },
  } as ImageObject // no rule looks at the rest
  expect(planImage(image, NOTHING)).toMatchObject([
    { do: 'status', status: { state: 'creating' }, conditions: [{ type: NAME_TAKEN, status: 'False' }] },
    { do: 'effect', name: 'copy' },
  ])
  expect(planImage(image, HELD)).toMatchObject([
    { do: 'status', status: { state: 'ready' }, conditions: [{ type: NAME_TAKEN, status: 'False' }] },
  ])
})
