import { expect, test } from 'vitest'
import { BILLABLES } from '../../../../controllers/nouns/billing/billables.ts'
import { Database } from '../../../../resources/database/index.ts'

test('what the archive of a database holds above its allowance is billed as object storage', () => {
  const billables = BILLABLES.filter(({ kind }) => kind === Database)
  expect(billables.map(({ resourceType }) => resourceType)).toEqual(['object_storage'])
  const names = { networkId: 'n', databaseName: 'shop', ownerName: 'shop' }
  const spec = Database.spec.parse({ zone: 'z', name: 'orders', ...names, storageGibibytes: 10 })
  const billed = (archiveBytes?: number) =>
    billables[0]?.of(
      { apiVersion: '', kind: 'Database', metadata: { name: 'd' }, spec, status: { archiveBytes } },
      {
        of: () => undefined,
      } as never,
      new Date(0),
    )
  expect([billed(), billed(40 * 1024 ** 3), billed(42.5 * 1024 ** 3)]).toEqual([
    undefined,
    undefined,
    { name: 'orders (archive)', quantity: 3, isOfHour: true },
  ])
})
