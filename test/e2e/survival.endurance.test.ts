/** `kill -9` of everything in the middle of changes: afterwards all converges. */
import { afterAll, beforeAll, it } from 'vitest'
import { openSurvivor, type Survivor, surviveKills } from './survivor.ts'
import { UNREAD } from './warnings.ts'

let survivor: Survivor
beforeAll(async () => void (survivor = await openSurvivor('survivor@example.com', UNREAD)))
afterAll(() => survivor?.close())

it.each([0, 300, 1_500])('converges when everything is killed %i ms into a creation and a deletion', (milliseconds) =>
  surviveKills(survivor, milliseconds),
)
