/** What the image of nodes brings: programs that were built, and images of containers as archives. */
import { createHash } from 'node:crypto'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  findNodePrograms,
  imageArchive,
  putNodePrograms,
  writeArchives,
} from '../../../../agents/node/images/managed/node-programs.ts'
import { ImageUnavailable } from '../../../../agents/node/images/recipe.ts'
import { BUSYBOX_IMAGE, COREDNS_IMAGE, PAUSE_IMAGE } from '../../../../domain/kubernetes-cluster/versions.ts'

const run = promisify(execFile)
let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'node-programs-'))
})
afterEach(() => rm(folder, { recursive: true }))

const build = async (...paths: string[]) => {
  for (const path of paths) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), `program ${path}`, { mode: 0o755 })
  }
}
/** Of the new system, whose packages have one of the programs. */
const root = () => join(folder, 'root')
const COMMON = ['root/usr/bin/busybox', 'v0.34.0/konnectivity-agent', 'pause-1/pause', 'v1.15.0/coredns']
const NEWEST = ['v1.36.3/kubelet', 'v1.36.3/kube-proxy']

test('what is not built is named, with the command that builds it', async () => {
  await build(...COMMON, 'v1.36.3/kubelet')
  const missing = findNodePrograms(root(), folder)
  await expect(missing).rejects.toBeInstanceOf(ImageUnavailable)
  await expect(missing).rejects.toThrow(/npm run build:kubernetes; .*v1\.36\.3\/kube-proxy is missing/)
})

test('nodes can run each release that control planes run', async () => {
  await build(...COMMON, ...NEWEST, 'v1.36.3/kube-apiserver')
  const releasesOf = async () =>
    Object.keys((await findNodePrograms(root(), folder)).files).map((path) => path.split('/')[2])
  expect(new Set(await releasesOf())).toEqual(new Set(['konnectivity-agent', '1.36.3']))
  await build('v1.35.4/kube-apiserver')
  await expect(findNodePrograms(root(), folder)).rejects.toThrow('v1.35.4/kubelet is missing')
  await build('v1.35.4/kubelet', 'v1.35.4/kube-proxy')
  expect(new Set(await releasesOf())).toEqual(new Set(['konnectivity-agent', '1.35.4', '1.36.3']))
  // Whoever built the older minor version alone needs no other one.
  await rm(join(folder, 'v1.36.3'), { recursive: true })
  expect(new Set(await releasesOf())).toEqual(new Set(['konnectivity-agent', '1.35.4']))
})

test('an image is a layout whose every part has the digest that it is called by', async () => {
  await build('coredns')
  const archive = await imageArchive('images.svccloud.internal/coredns:1', join(folder, 'coredns'))
  expect(await imageArchive('images.svccloud.internal/coredns:1', join(folder, 'coredns'))).toEqual(archive)
  await writeFile(join(folder, 'a.tar'), archive)
  await run('tar', ['-xf', 'a.tar'], { cwd: folder })
  const json = async (path: string) => JSON.parse(await readFile(join(folder, path), 'utf8'))
  const blob = ({ digest }: { digest: string }) => `blobs/sha256/${digest.replace('sha256:', '')}`
  for (const name of await readdir(join(folder, 'blobs/sha256'))) {
    const content = await readFile(join(folder, 'blobs/sha256', name))
    expect(createHash('sha256').update(content).digest('hex')).toBe(name)
  }
  expect(await json('oci-layout')).toEqual({ imageLayoutVersion: '1.0.0' })
  const [entry] = (await json('index.json')).manifests
  expect(entry.annotations['io.containerd.image.name']).toBe('images.svccloud.internal/coredns:1')
  const manifest = await json(blob(entry))
  const config = await json(blob(manifest.config))
  expect(config.config.Entrypoint).toEqual(['/coredns'])
  expect(config.rootfs.diff_ids).toEqual([manifest.layers[0].digest])
  await run('tar', ['-xf', blob(manifest.layers[0]), '--one-top-level=layer'], { cwd: folder })
  expect(await readFile(join(folder, 'layer/coredns'), 'utf8')).toBe('program coredns')
})

test('the guest knows its images by their names, and each is an archive until it is taken in', async () => {
  await build(...COMMON, ...NEWEST)
  const programs = await findNodePrograms(root(), folder)
  await putNodePrograms(root(), programs)
  const names = JSON.parse(await readFile(join(root(), 'usr/share/svccloud/images.json'), 'utf8'))
  expect(names.toSorted()).toEqual([BUSYBOX_IMAGE, COREDNS_IMAGE, PAUSE_IMAGE])
  await writeArchives(join(folder, 'archives'), programs)
  expect(await readdir(join(folder, 'archives'))).toHaveLength(names.length)
})

test('a program that does what it is called by is there once, with all its names', async () => {
  await build(...COMMON, ...NEWEST)
  await writeArchives(join(folder, 'archives'), await findNodePrograms(root(), folder))
  const [archive = ''] = (await readdir(join(folder, 'archives'))).filter((name) => name.includes('busybox'))
  await run('tar', ['-xf', `archives/${archive}`, '--one-top-level=image'], { cwd: folder })
  await mkdir(join(folder, 'layer'))
  const blobs = join(folder, 'image/blobs/sha256')
  for (const name of await readdir(blobs))
    await run('tar', ['-xf', join(blobs, name), '-C', join(folder, 'layer')]).catch(() => undefined)
  const [sh, httpd] = await Promise.all(['sh', 'httpd'].map((name) => stat(join(folder, 'layer/bin', name))))
  expect(sh?.ino).toBe(httpd?.ino)
  const temporary = await stat(join(folder, 'layer/tmp'))
  expect([temporary.isDirectory(), temporary.mode & 0o7777]).toEqual([true, 0o1777])
  expect(await readFile(join(folder, 'layer/bin/httpd'), 'utf8')).toBe('program root/usr/bin/busybox')
})
