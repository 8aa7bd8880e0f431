/** Finds the S3 operation of a request, or why it is none: by the table alone. Anything that two readers could
 *  understand differently is refused. Pure. */
import { checkBucket, checkKey } from './names.ts'
import {
  CHECKSUM_PARAMETERS,
  COMMON_HEADERS,
  COMMON_PARAMETERS,
  METADATA,
  type OperationName,
  type OperationRule,
  OPERATIONS,
} from './operation-table.ts'
import { notOffered, S3Refusal } from './refusal.ts'
import { type CopySource, readCopySource } from './copy-source.ts'
import { type Headers, type Parameters, type RawRequest, readHeaders, readPath, readParameters } from './target.ts'
import { checkValues } from './values.ts'

export interface S3Operation {
  readonly name: OperationName
  readonly rule: OperationRule
  /** Undefined for the list of buckets. */
  readonly bucket: string | undefined
  /** In its stored form, decoded. */
  readonly key: string | undefined
  readonly parameters: Parameters
  readonly headers: Headers
  readonly copy: CopySource | undefined
}

interface Entry extends OperationRule {
  readonly name: OperationName
}

const isName = (name: string): name is OperationName => Object.hasOwn(OPERATIONS, name)
const ENTRIES: readonly Entry[] = Object.keys(OPERATIONS)
  .filter(isName)
  .map((name) => ({ name, ...OPERATIONS[name] }))
const METHODS: ReadonlySet<string> = new Set(ENTRIES.map(({ method }) => method))

/** Returns the Refusal for anything that is not in the table, and for names and values without their exact format. */
export function readOperation(request: RawRequest): S3Operation | S3Refusal {
  try {
    return operationOf(request)
  } catch (error) {
    if (error instanceof S3Refusal) return error
    throw error
  }
}

function operationOf({ method, target, rawHeaders }: RawRequest): S3Operation {
  if (!METHODS.has(method))
    throw new S3Refusal(405, 'MethodNotAllowed', 'The specified method is not allowed against this resource.')
  const { path, parameters } = splitTarget(target)
  const headers = readHeaders(rawHeaders)
  const { bucket, key } = readPath(path)
  if (bucket !== undefined) checkBucket(bucket)
  if (key !== undefined) checkKey(key)
  const resource = bucket === undefined ? 'service' : key === undefined ? 'bucket' : 'object'
  const entry = findEntry(method, resource, parameters, headers)
  for (const name of parameters.keys()) if (!isKnownParameter(entry, name)) throw notOffered(`The parameter ${name}`)
  for (const name of headers.keys()) if (!isKnownHeader(entry, name)) throw notOffered(`The header ${name}`)
  checkValues(entry.name, parameters, headers)
  const source = headers.get('x-amz-copy-source')
  return {
    name: entry.name,
    rule: entry,
    bucket,
    key,
    parameters,
    headers,
    copy: source === undefined ? undefined : readCopySource(source, headers.get('x-amz-copy-source-range')),
  }
}

const splitTarget = (target: string): { readonly path: string; readonly parameters: Parameters } => {
  const index = target.indexOf('?')
  return index < 0
    ? { path: target, parameters: new Map() }
    : { path: target.slice(0, index), parameters: readParameters(target.slice(index + 1)) }
}

/** The operation that requires the most of what is present. */
function findEntry(
  method: string,
  resource: OperationRule['resource'],
  parameters: Parameters,
  headers: Headers,
): Entry {
  const isCopy = headers.has('x-amz-copy-source')
  let found: Entry | undefined
  for (const entry of ENTRIES) {
    const { selectors = [] } = entry
    if (entry.method !== method || entry.resource !== resource || (entry.isCopy ?? false) !== isCopy) continue
    if (!selectors.every((name) => parameters.has(name))) continue
    if (found === undefined || selectors.length > (found.selectors ?? []).length) found = entry
  }
  if (found !== undefined) return found
  if (resource === 'service')
    throw new S3Refusal(405, 'MethodNotAllowed', 'The specified method is not allowed against this resource.')
  throw notOffered(isCopy ? 'Copying like this' : `${method} of this kind`)
}

const isKnownParameter = (entry: Entry, name: string): boolean =>
  (entry.selectors ?? []).includes(name) ||
  (entry.parameters ?? []).includes(name) ||
  COMMON_PARAMETERS.includes(name) ||
  (entry.body === 'bytes' && CHECKSUM_PARAMETERS.includes(name))

const PREFIX = 'x-amz-'

function isKnownHeader(entry: Entry, name: string): boolean {
  if (!name.startsWith(PREFIX) || name.startsWith(METADATA)) return true
  const rest = name.slice(PREFIX.length)
  return COMMON_HEADERS.includes(rest) || (entry.headers ?? []).includes(rest)
}

/** Operations by name, for lists of them. */
export const operationEntries = (): readonly Entry[] => ENTRIES
