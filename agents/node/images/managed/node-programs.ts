/** What the image of nodes brings besides Debian's packages: the programs of Kubernetes, and images of containers that
 *  no registry has, made here as archives (opencontainers.org, image layout) of one program each. */
import { createHash } from 'node:crypto'
import { access, chmod, constants, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  BUILD_KUBERNETES_COMMAND,
  COREDNS_IMAGE,
  COREDNS_VERSION,
  KUBERNETES_RELEASES,
  PAUSE_IMAGE,
  PAUSE_VERSION,
  TUNNEL_VERSION,
} from '../../../../kit/control-planes/versions.ts'
import { toolsFolder } from '../../../../kit/sys/tools-folder.ts'
import { ImageUnavailable } from '../recipe.ts'
import { tarOf } from '../tar.ts'

/** In the guest, as `kubernetes.py` knows them. */
const PROGRAMS = 'opt/kubernetes'
const ARCHIVES = 'usr/share/svccloud/images'
const INDEX = 'images.json'

export const NODE_VERSIONS = [KUBERNETES_RELEASES, TUNNEL_VERSION, COREDNS_VERSION, PAUSE_VERSION]

interface NodePrograms {
  /** Path here by path in the guest. */
  readonly files: Readonly<Record<string, string>>
  /** The one program of each image, by the image's name. */
  readonly images: Readonly<Record<string, string>>
}

/** Those that were built, of the releases that control planes here have: at least of one. Throws ImageUnavailable with
 *  the command that builds them. */
export async function findNodePrograms(folder = toolsFolder()): Promise<NodePrograms> {
  const files: Record<string, string> = {
    [`${PROGRAMS}/konnectivity-agent`]: join(folder, TUNNEL_VERSION, 'konnectivity-agent'),
  }
  for (const release of KUBERNETES_RELEASES) {
    const of = (name: string) => join(folder, `v${release}`, name)
    const isNewest = release === KUBERNETES_RELEASES.at(-1)
    if (!isNewest && !(await isThere(of('kube-apiserver')))) continue
    for (const name of ['kubelet', 'kube-proxy']) files[`${PROGRAMS}/${release}/${name}`] = of(name)
  }
  const images = {
    [PAUSE_IMAGE]: join(folder, `pause-${PAUSE_VERSION}`, 'pause'),
    [COREDNS_IMAGE]: join(folder, `v${COREDNS_VERSION}`, 'coredns'),
  }
  for (const path of [...Object.values(files), ...Object.values(images)])
    if (!(await isThere(path)))
      throw new ImageUnavailable(
        `its programs are not built: ${BUILD_KUBERNETES_COMMAND}; ${path} is missing (SVCCLOUD_TOOLS names another ` +
          'folder of programs, which sudo may need)',
      )
  return { files, images }
}

const isThere = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )

/** Puts them into the new system. */
export async function putNodePrograms(root: string, { files, images }: NodePrograms): Promise<void> {
  for (const [path, from] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await copyFile(from, join(root, path))
    await chmod(join(root, path), 0o755)
  }
  const archives = join(root, ARCHIVES)
  await mkdir(archives, { recursive: true })
  const index: Record<string, string> = {}
  for (const [name, program] of Object.entries(images)) {
    const file = `${name.replaceAll(/[/:]/g, '-')}.tar`
    await writeFile(join(archives, file), await imageArchive(name, program))
    index[name] = file
  }
  await writeFile(join(archives, INDEX), JSON.stringify(index))
}

const OCI = 'application/vnd.oci.image'

/** An image with nothing but that program, which it runs: the same bytes for the same program. */
export async function imageArchive(name: string, program: string): Promise<Buffer> {
  const entry = program.split('/').at(-1) ?? program
  const blobs = new Map<string, Buffer>()
  const add = (content: Buffer, mediaType: string) => {
    const digest = createHash('sha256').update(content).digest('hex')
    blobs.set(`blobs/sha256/${digest}`, content)
    return { mediaType: `${OCI}.${mediaType}`, digest: `sha256:${digest}`, size: content.length }
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const layer = add(tarOf([{ name: entry, content: await readFile(program), mode: 0o755 }]), 'layer.v1.tar')
  const config = add(
    json({
      architecture: 'amd64',
      os: 'linux',
      config: { Entrypoint: [`/${entry}`], Env: ['PATH=/'], WorkingDir: '/' },
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    }),
    'config.v1+json',
  )
  const manifest = add(
    json({ schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json`, config, layers: [layer] }),
    'manifest.v1+json',
  )
  const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name }
  const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] }
  return tarOf([
    { name: 'oci-layout', content: json({ imageLayoutVersion: '1.0.0' }) },
    { name: 'index.json', content: json(index) },
    ...[...blobs].map(([path, content]) => ({ name: path, content })),
  ])
}
