/** Built files for browsers, in memory: read once with their compressed forms, and sent as a browser asks for them
 *  (RFC 9110). */
import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { extname, join, relative } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { codingOf, hasTag } from './representation.ts'

export interface StaticFile {
  readonly type: string
  /** Weak: the same for every coding. */
  readonly tag: string
  readonly bytes: Buffer
  readonly coded: readonly CodedForm[]
}

interface CodedForm {
  readonly coding: string
  readonly bytes: Buffer
}

/** By their paths, with a slash at the beginning. */
export type StaticFiles = ReadonlyMap<string, StaticFile>

/** Behind the name of a file. */
const SUFFIXES = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

/** Other files are for tools. */
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}

/** Of all files together, with their compressed forms. */
const BYTES_MAXIMUM = 64 * 1024 * 1024

/** Reads the files of a folder whose type browsers know; names with a dot at the beginning are for tools. Throws node's
 *  error when the folder cannot be read, and an error when it has more than 64 MiB. */
export async function readStaticFiles(folder: string): Promise<StaticFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `/${relative(folder, join(parentPath, name))}`)
    .filter((path) => !path.includes('/.'))
  const contents = new Map<string, Buffer>()
  let total = 0
  for (const path of paths) {
    const bytes = await readFile(join(folder, path))
    total += bytes.length
    if (total > BYTES_MAXIMUM) throw new Error(`${folder} has more than ${BYTES_MAXIMUM} bytes`)
    contents.set(path, bytes)
  }
  return new Map(
    [...contents].flatMap(([path, bytes]): [string, StaticFile][] => {
      const type = TYPES[extname(path)]
      if (type === undefined) return []
      const coded = SUFFIXES.flatMap(([coding, suffix]) => {
        const form = contents.get(`${path}${suffix}`)
        return form === undefined ? [] : [{ coding, bytes: form }]
      })
      return [[path, { type, tag: tagOf(bytes), bytes, coded }]]
    }),
  )
}

/** A file that is made at the start, with its compressed forms unless it is compressed itself. Throws for an extension
 *  that browsers do not know. */
export function staticFileOf(extension: string, bytes: Buffer): StaticFile {
  const type = TYPES[extension]
  if (type === undefined) throw new Error(`files ${extension} have no type`)
  const coded =
    extension === '.png'
      ? []
      : [
          { coding: 'br', bytes: brotliCompressSync(bytes) },
          { coding: 'gzip', bytes: gzipSync(bytes) },
        ]
  return { type, tag: tagOf(bytes), bytes, coded }
}

const TAG_CHARACTERS = 22 // 132 bits
const tagOf = (bytes: Buffer): string => `W/"${hash('sha256', bytes, 'base64url').slice(0, TAG_CHARACTERS)}"`

/** Answers GET or HEAD: 304 when the browser has the file, else the smallest form that it accepts. */
export function sendStaticFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: StaticFile,
  headers: Readonly<Record<string, string>>,
): void {
  const { vary } = headers
  const shared = {
    ...headers,
    etag: file.tag,
    vary: vary === undefined ? 'Accept-Encoding' : `Accept-Encoding, ${vary}`,
  }
  if (hasTag(request.headers['if-none-match'], file.tag)) return void response.writeHead(304, shared).end()
  const accepted = request.headers['accept-encoding']
  const coding = codingOf(typeof accepted === 'string' ? accepted : undefined)
  const form = file.coded.find((each) => each.coding === coding)
  const body = form?.bytes ?? file.bytes
  response
    .writeHead(200, {
      ...shared,
      'content-type': file.type,
      'content-length': String(body.length),
      ...(form === undefined ? {} : { 'content-encoding': form.coding }),
    })
    .end(request.method === 'HEAD' ? undefined : body)
}
