/** Fields that several nouns have, stored and public: each limit is said here, or in `domain/`, and nowhere else. Texts
 *  of stored shapes are bounded only; admission and the bodies of requests say what they must be. */
import { z } from 'zod'
import { MANAGED_BY_LENGTH_MAXIMUM } from '../../domain/managed-machine/rules.ts'
import { PORT_MAXIMUM } from '../../domain/server/firewall.ts'
import { SSH_KEY_LENGTH_MAXIMUM, SSH_KEYS_PER_SERVER_MAXIMUM } from '../../domain/ssh-key/rules.ts'
import { STORAGE_GIBIBYTES_MAXIMUM } from '../../domain/storage/rules.ts'
import { Conditions, NAME_LENGTH_MAXIMUM, ObservedGeneration, Printable } from './shapes.ts'

/** The name of an object of Kubernetes, or a DNS name. */
export const ObjectName = z.string().max(253)
/** An IPv4 or IPv6 address. */
export const AddressText = z.string().max(45)
/** An address, or a range of them with its prefix length. */
export const CidrText = z.string().max(49)
export const Port = z.int().min(1).max(PORT_MAXIMUM)

const TITLE_LENGTH_MAXIMUM = 255
export const Title = Printable.max(TITLE_LENGTH_MAXIMUM)
export const StoredTitle = z.string().max(TITLE_LENGTH_MAXIMUM)
/** As `PrintableName`. */
export const StoredDisplayName = z.string().min(1).max(NAME_LENGTH_MAXIMUM)
export const REASON_LENGTH_MAXIMUM = 1_000
/** Why an operator does something, for the log. */
export const Reason = Printable.trim().min(1).max(REASON_LENGTH_MAXIMUM)
/** The number of a ticket, or another reference of the staff. */
export const TicketReference = z.string().trim().max(200).nullable().optional()
export const CouponCode = z.string().max(200)
/** The URL of an API, or of a page. */
export const EndpointUrl = z.string().max(300)

export const Cores = z.int().min(1).max(512)
export const MemoryMebibytes = z.int().min(32).max(4_194_304)
export const DiskGibibytes = z.int().min(1).max(STORAGE_GIBIBYTES_MAXIMUM)
/** Beyond the largest disk, so that admission refuses what is too large in the words of REST (`requireDiskSize`). */
export const StoredDiskGibibytes = z.int().min(1).max(65_536)
/** Days for which backups are kept. */
export const RetentionDays = z.int().min(1).max(365)

/** `edge:<id>`, as `managedByOf` makes it. */
export const ManagedByText = z.string().max(MANAGED_BY_LENGTH_MAXIMUM)

export const PublicKey = z.string().max(SSH_KEY_LENGTH_MAXIMUM)
/** Public keys in one-line OpenSSH format that may sign in to a machine. */
export const PublicKeys = z.array(PublicKey).max(SSH_KEYS_PER_SERVER_MAXIMUM)

/** The start of a status that a controller or an agent writes. */
export const OBSERVED = { observedGeneration: ObservedGeneration, conditions: Conditions.optional() }
export const AppliedSequence = z
  .int()
  .min(0)
  .optional()
  .describe('Change of the network database that the newest operation waits for on the hosts.')

/** An integer between bounds of `domain/`. */
export const within = ({ least, most }: { readonly least: number; readonly most: number }) =>
  z.int().min(least).max(most)
