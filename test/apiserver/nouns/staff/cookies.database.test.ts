import { expect, test } from 'vitest'
import { useDatabase } from '../../../database.ts'
import { openCloud } from '../../cloud.ts'

const database = useDatabase()

test.each([
  ['https://staff.example.com', true],
  ['http://staff.example.com', false],
  [undefined, false],
])('cookies of staff at %s are as secure as that address', async (staffPortalUrl, isSecure) => {
  const cloud = await openCloud(database.db, staffPortalUrl === undefined ? {} : { staffPortalUrl })
  const { headers } = await cloud.send('POST', '/v1/admin/auth/logout', {}, '192.0.2.9', 'operators')
  await cloud.close()
  const cookies = [headers['set-cookie'] ?? []].flat()
  expect(cookies).toHaveLength(2)
  for (const cookie of cookies) expect(cookie.includes('; Secure')).toBe(isSecure)
})
