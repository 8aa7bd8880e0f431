/** A host that refuses an Image at once is given another one after a while only. */
import { expect, test } from 'vitest'
import { failedImages } from '../../../controllers/kit/failed-images.ts'
import type { ImageStatus } from '../../../resources/instance/index.ts'
import { NAME_TAKEN } from '../../../resources/instance/name-taken.ts'

const NOW = new Date('2026-11-22T12:00:00Z')
type Images = Parameters<typeof failedImages>[0]
const image = (ageSeconds: number, state: ImageStatus['state'] = 'error', more: object = {}): Images[number] =>
  ({
    metadata: { creationTimestamp: new Date(NOW.getTime() - ageSeconds * 1_000).toISOString(), ...more },
    status: { state },
  }) as Images[number] // nothing else is read
const taken = { type: NAME_TAKEN, status: 'True', reason: 'OtherUid', message: '', lastTransitionTime: '' }

const [young, younger, old] = [image(100), image(1), image(300)]

test.each<[string, Images, ReturnType<typeof failedImages>]>([
  ['one that is younger waits', [young], { due: [], waitSeconds: 200 }],
  ['one that is old enough goes', [old], { due: [old] }],
  ['each by its own age', [younger, old, young], { due: [old], waitSeconds: 200 }],
  [
    'one of a clock that is ahead of this one is looked at after the pause',
    [image(-900)],
    { due: [], waitSeconds: 300 },
  ],
  ['one that goes already is left alone', [image(300, 'error', { deletionTimestamp: NOW.toISOString() })], { due: [] }],
  ['one that has not failed stays', [image(300, 'ready'), image(300, 'creating')], { due: [] }],
  [
    'one whose name is taken stays: its host goes on with it',
    [{ ...old, status: { state: 'error', conditions: [taken] } } as Images[number]],
    { due: [] },
  ],
])('%s', (_why, images, expected) => {
  expect(failedImages(images, NOW)).toEqual(expected)
})
