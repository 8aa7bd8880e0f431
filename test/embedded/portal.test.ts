import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { arePackagesInstalled } from '../../embedded/portal.ts'

test('packages are installed when each of them is, in the folder or above it', async () => {
  const root = await mkdtemp(join(tmpdir(), 'svccloud-portal-'))
  onTestFinished(() => rm(root, { recursive: true, force: true }))
  const folder = join(root, 'portal')
  const install = async (at: string, name: string) => {
    await mkdir(join(at, 'node_modules', name), { recursive: true })
    await writeFile(join(at, 'node_modules', name, 'package.json'), '{}')
  }
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ devDependencies: { '@a/first': '1', second: '1' } }))
  expect(await arePackagesInstalled(folder)).toBe(false)
  await install(folder, '@a/first')
  expect(await arePackagesInstalled(folder)).toBe(false)
  await install(root, 'second')
  expect(await arePackagesInstalled(folder)).toBe(true)
})
