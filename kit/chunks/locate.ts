/** Opens the store of backups that a setting names: a folder, or a bucket by its URL. */
import { join } from 'node:path'
import type { Clock } from '../sys/clock.ts'
import { openFolderStore } from './folder-store.ts'
import type { ObjectStore } from './object-store.ts'
import { openS3Store } from './s3-store.ts'

export interface StorePlace {
  /** A folder, or `https://host[:port]/bucket[/prefix]`. */
  readonly location: string
  /** The source of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (us-east-1), for a URL. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
}

const DEFAULT_REGION = 'us-east-1'

/** Whether the location is a bucket; else it is a folder. */
export const isBucket = (location: string): boolean => /^https?:\/\//.test(location)

/** The repository of the account in the store; without an account, the store itself is the repository. Throws when a
 *  bucket's credentials are missing. */
export function openStoreAt({ location, environment, clock }: StorePlace, account?: string): ObjectStore {
  const own = account === undefined ? [] : [account]
  if (!isBucket(location)) return openFolderStore(join(location, ...own))
  const [accessKeyId, secretAccessKey] = [environment['AWS_ACCESS_KEY_ID'], environment['AWS_SECRET_ACCESS_KEY']]
  if (!accessKeyId || !secretAccessKey)
    throw new Error('a bucket needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment')
  return openS3Store({
    url: new URL([location.replace(/\/+$/, ''), ...own].join('/')),
    credentials: { accessKeyId, secretAccessKey, region: environment['AWS_REGION'] || DEFAULT_REGION },
    clock,
  })
}
