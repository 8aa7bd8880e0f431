/** API tokens: the secret is shown once. */
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { readAgain } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import { useMay } from '../../api/session.ts'
import { Time, wordOf } from '../../nouns/value.tsx'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { Button } from '../../ui/button.tsx'
import { Copy, Snippet } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Between, Soft, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { useSubmission } from '../submission.ts'
import { Rows } from './rows.tsx'

export function Tokens(): ReactNode {
  const may = useMay()
  const [isOpen, setOpen] = useState(false)
  const texts = settingsTexts().tokens
  if (!may('list_api_tokens')) return <Soft>{t().problem.askOwner}</Soft>
  return (
    <Stack>
      <Between>
        <p className="soft">{texts.note}</p>
        <Button kind="primary" icon={<Plus aria-hidden="true" />} onPress={() => setOpen(true)}>
          {texts.create}
        </Button>
      </Between>
      <Rows
        list="list_api_tokens"
        label={t().account.tokens}
        idOf={({ id }) => id}
        nameOf={({ name }) => name}
        none={texts.none}
        columns={[
          { id: 'name', name: t().fields.name, cell: ({ name }) => <span dir="auto">{name}</span> },
          { id: 'scope', name: texts.scope, cell: ({ scope }) => scopeText(scope) },
          { id: 'hint', name: texts.hint, cell: ({ token_hint: hint }) => <code>{hint}</code> },
          { id: 'used', name: texts.used, cell: ({ last_used_at: at }) => (at === null ? '–' : <Time instant={at} />) },
          { id: 'status', name: t().fields.state, cell: ({ status }) => wordOf(status) },
        ]}
        remove={{
          name: t().members.revoke,
          why: ({ status }) => (status === 'active' ? undefined : wordOf(status)),
          note: texts.revokeNote,
          run: ({ id }) => call('revoke_api_token', { path: { id } }),
        }}
      />
      {isOpen ? <Create close={() => setOpen(false)} /> : null}
    </Stack>
  )
}

const scopeText = (scope: string | readonly string[]): string =>
  scope === 'read'
    ? settingsTexts().tokens.read
    : scope === 'read_write'
      ? settingsTexts().tokens.readWrite
      : String(scope)

function Create({ close }: { readonly close: () => void }): ReactNode {
  const [name, setName] = useState('')
  const [scope, setScope] = useState<'read' | 'read_write'>('read')
  const [secret, setSecret] = useState<string>()
  const texts = settingsTexts().tokens
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const { token } = await call('create_api_token', { body: { name, scope } })
    setSecret(token)
    await readAgain('list_api_tokens')
  })
  if (secret !== undefined)
    return (
      <Dialog title={texts.made} onClose={close} isWide isFirm>
        <p>{texts.once}</p>
        <Copy text={secret} />
        <Snippet
          label={texts.where}
          forms={[
            { name: 'CLI', text: `svccloud login --url ${location.origin}` },
            { name: 'curl', text: `curl -H "Authorization: Bearer $TOKEN" ${location.origin}/v1/account` },
          ]}
        />
        <div className="dialog-end">
          <Button kind="primary" onPress={close}>
            {t().factor.kept}
          </Button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title={texts.create} onClose={close} isFirm={isBusy}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <TextField label={t().fields.name} value={name} onChange={setName} wrong={refusal?.fields['name']} autoFocus />
        <SelectField
          label={texts.scope}
          options={[
            { id: 'read', name: texts.read, note: texts.readNote },
            { id: 'read_write', name: texts.readWrite, note: texts.readWriteNote },
          ]}
          value={scope}
          onChange={(next) => setScope(next === 'read_write' ? 'read_write' : 'read')}
        />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="dialog-end">
          <Button onPress={close} why={isBusy ? t().page.busy(texts.create) : undefined}>
            {t().ui.cancel}
          </Button>
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {texts.create}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
