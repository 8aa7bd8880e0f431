/** Compresses the built files once, as far as they shrink: the API server sends what a browser accepts. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { Plugin } from 'vite'

/** Files of fewer bytes cost more in headers than they save. */
const BYTES_MINIMUM = 512
const TEXTS = /\.(js|css|html|svg|json|webmanifest|txt)$/

const asBrotli = promisify(brotliCompress)
const asGzip = promisify(gzip)

/** Writes `.br` (quality 11) and `.gz` (level 9) beside each text of the folder. */
async function compressFolder(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  // Names with a dot are for tools.
  const isServed = (path: string): boolean => !path.slice(folder.length).includes('/.')
  const files = entries.filter((entry) => entry.isFile() && TEXTS.test(entry.name) && isServed(entry.parentPath))
  await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name)
      const bytes = await readFile(path)
      if (bytes.length < BYTES_MINIMUM) return
      const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } }
      await writeFile(`${path}.br`, await asBrotli(bytes, brotli))
      await writeFile(`${path}.gz`, await asGzip(bytes, { level: constants.Z_BEST_COMPRESSION }))
    }),
  )
}

/** The last step of a build. */
export function compressFiles(): Plugin {
  let folder: string | undefined
  return {
    name: 'svccloud-compress',
    apply: 'build',
    writeBundle: ({ dir }) => {
      folder = dir
    },
    closeBundle: async () => {
      if (folder !== undefined) await compressFolder(folder)
    },
  }
}
