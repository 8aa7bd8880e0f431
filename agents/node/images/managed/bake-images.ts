/** Adds images of containers to a new system, unpacked as containerd stores them. So machines do not unpack them at
 *  their first start, and no image can be lost that no registry has. The new system's own containerd does this, and is
 *  stopped before the disk is written. Needs root. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { runProgram } from '../../run-program.ts'
import { ImageUnavailable } from '../recipe.ts'

const MINUTES = 10
/** Folder in the new system. */
const WORK = '/run/bake'
const SOCKET = `${WORK}/containerd.sock`

/** containerd needs to see the mount of its root, so the root becomes a mount first. Everything ends with the first
 *  program, because it runs in separate namespaces. Pinned: the kubelet never removes the images to free space. */
const SCRIPT = `set -e
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
exec chroot . /bin/sh -ec '
cat > ${WORK}/config.toml << end
version = 2
state = "${WORK}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "${SOCKET}"
end
/usr/bin/containerd --config ${WORK}/config.toml > ${WORK}/log 2>&1 & containerd=$!
ctr() { /usr/bin/ctr --address ${SOCKET} --namespace k8s.io "$@"; }
until ctr version > /dev/null 2>&1; do
  kill -0 $containerd || { tail -n 3 ${WORK}/log >&2; exit 1; }
  sleep 0.2
done
for archive in ${WORK}/*.tar; do ctr images import --snapshotter overlayfs "$archive" > /dev/null; done
for name in $(ctr images list --quiet); do
  ctr images label "$name" io.cri-containerd.image=managed io.cri-containerd.pinned=pinned > /dev/null
done
ctr images list --quiet
kill $containerd
wait $containerd || true
'`

/** Folder for the archives, below the root of the new system. */
export const bakeFolder = (root: string): string => join(root, WORK)

/** Imports every archive of that folder, and removes the folder. Throws ImageUnavailable when one of the names is
 *  missing afterwards. */
export async function bakeImages(root: string, names: readonly string[]): Promise<void> {
  const known = await runProgram('unshare', ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', SCRIPT, root], {
    timeoutMilliseconds: MINUTES * 60_000,
  })
  await rm(bakeFolder(root), { recursive: true })
  const missing = names.filter((name) => !known.split('\n').includes(name))
  if (missing.length > 0) throw new ImageUnavailable(`containerd did not take in ${missing.join(', ')}`)
}
