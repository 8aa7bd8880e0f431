/** The boot storage of a server as its controller makes it, grows it and makes it anew. */
import { expect, test } from 'vitest'
import { ensureStorage } from '../../../../controllers/nouns/server/drafts.ts'
import type { StorageSpec } from '../../../../resources/storage/index.ts'
import { newborn, started } from './worlds.ts'

const draftOf = ({ server, observed }: ReturnType<typeof newborn>, name?: string): Partial<StorageSpec> => {
  if (observed.claims === undefined) throw new Error('it has claims')
  const action = ensureStorage(server, observed, observed.claims, name)
  return action.do === 'ensure' ? (action.draft.spec as Partial<StorageSpec>) : {} // what it drafts is a Storage
}

test('is made with the schedule of its server', () => {
  const backupSchedule = '30 3 * * *'
  expect(draftOf(newborn({ spec: { backupSchedule }, observed: { storage: undefined } }))).toMatchObject({
    backupSchedule,
  })
  expect(draftOf(newborn({ observed: { storage: undefined } }))).not.toHaveProperty('backupSchedule')
})

test('keeps what its owner has changed when it grows; a new one is backed up as the one before', () => {
  const before = started({ spec: { backupSchedule: '0 1 * * *' } })
  const { storage } = before.observed
  if (storage === undefined) throw new Error('it has a boot storage')
  const changed = { title: 'Mine', isProtected: true, backupSchedule: '0 5 * * *' }
  const world = {
    ...before,
    observed: { ...before.observed, storage: { ...storage, spec: { ...storage.spec, ...changed } } },
  }
  expect(draftOf(world)).toMatchObject(changed)
  expect(draftOf(world, 'another')).toMatchObject({ isProtected: false, backupSchedule: changed.backupSchedule })
  const { backupSchedule: _backupSchedule, ...unscheduled } = storage.spec
  const without = { ...before, observed: { ...before.observed, storage: { ...storage, spec: unscheduled } } }
  expect(draftOf(without)).not.toHaveProperty('backupSchedule')
})
