/** Snapshots, backups and custom images count their GiB against quotas. What is there already counts whatever the
 *  limit: snapshots and backups as they are billed; custom images when their controller looks at them. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    insert into account_quota (account_id, name, "limit")
    select account.id, added.name, added."limit" from account, (values
      ('snapshot_gibibytes', 20480), ('backup_gibibytes', 51200), ('custom_image_gibibytes', 1024)
    ) as added (name, "limit")
    on conflict do nothing
  `.execute(db)
  await sql`
    insert into quota_holding (account_id, holder, name, amount)
    select holding.account_id, holding.holder, resource.resource_type || '_gibibytes', life.quantity
    from billed_life life
    join billed_resource resource on resource.id = life.resource
    join quota_holding holding on holding.account_id = resource.account_id
      and holding.holder = resource.resource_type || '/' || resource.resource_id
      and holding.name = resource.resource_type || 's'
    where life.until is null and resource.resource_type in ('snapshot', 'backup') and life.quantity > 0
    on conflict do nothing
  `.execute(db)
  await sql`
    update account_quota quota set used = held.amount
    from (
      select account_id, name, sum(amount) as amount from quota_holding
      where name in ('snapshot_gibibytes', 'backup_gibibytes') group by account_id, name
    ) held
    where quota.account_id = held.account_id and quota.name = held.name
  `.execute(db)
}
