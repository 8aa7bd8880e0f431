/** What a new tenant is known by. */
import { newBase62, type Random } from '../sys/random.ts'

const KEY_CHARACTERS = 20
const SECRET_CHARACTERS = 40
const PREFIX_CHARACTERS = 10

export const newSecret = (random: Random): string => newBase62(random, SECRET_CHARACTERS)

/** None of them says whose it is, and none can be guessed from another. */
export const newTenantKeys = (
  random: Random,
): { readonly accessKeyId: string; readonly secretAccessKey: string; readonly bucketPrefix: string } => ({
  accessKeyId: newBase62(random, KEY_CHARACTERS).toUpperCase(),
  secretAccessKey: newSecret(random),
  bucketPrefix: `${newBase62(random, PREFIX_CHARACTERS).toLowerCase()}-`,
})
