import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { noteStores, requireStores } from '../../embedded/stores.ts'

let root: string
let folder: { readonly root: string; readonly postgres: string; readonly kubernetes: string }
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svccloud-stores-'))
  folder = { root, postgres: join(root, 'postgres'), kubernetes: join(root, 'kubernetes') }
  await mkdir(join(folder.postgres, 'data'), { recursive: true })
  await mkdir(join(folder.kubernetes, 'log'), { recursive: true })
})
afterEach(() => rm(root, { recursive: true, force: true }))

const USED = ['postgres', 'kubernetes'] as const
const begin = async () => {
  await writeFile(join(folder.postgres, 'data/PG_VERSION'), '17')
  await writeFile(join(folder.kubernetes, 'log/log-0'), '')
}

test('a first start may be killed anywhere', async () => {
  await requireStores(folder, USED, [])
  await writeFile(join(folder.postgres, 'data/PG_VERSION'), '17')
  await expect(requireStores(folder, USED, [])).resolves.toBeUndefined()
})

test('a store that is empty while the other is not is initialised again only if the operator asks for it', async () => {
  await begin()
  await noteStores(folder, USED)
  await expect(requireStores(folder, USED, [])).resolves.toBeUndefined()
  await rm(join(folder.kubernetes, 'log/log-0'))
  await expect(requireStores(folder, USED, [])).rejects.toThrow('SVCCLOUD_ACCEPT_EMPTY_STORE=kubernetes')
  await expect(requireStores(folder, USED, ['kubernetes'])).resolves.toBeUndefined()
  await begin()
  await rm(join(folder.postgres, 'data'), { recursive: true })
  await expect(requireStores(folder, USED, [])).rejects.toThrow(`${folder.postgres} is empty`)
  // one of somebody else's is none of its business
  await expect(requireStores(folder, ['kubernetes'], [])).resolves.toBeUndefined()
})
