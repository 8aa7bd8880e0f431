/** The form that makes any noun, with its price and the same as a command. */
import { type FormEvent, type ReactNode, useState } from 'react'
import { useMutation, useQuery } from '@tanstack/react-query'
import type { BodySchema } from '../api/body-schema.ts'
import type { OperationId } from '../api/operations.ts'
import { portal, ruleOf } from '../api/portal.ts'
import { Refusal } from '../api/refusal.ts'
import { useGo } from '../shell/go.ts'
import { smallMoney, money } from '../texts/format.ts'
import { nounTexts, t } from '../texts/index.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { Snippet } from '../ui/copy.tsx'
import { Loading, Page, Panel, Price, Soft, Split, Stack } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { notify } from '../ui/toast.tsx'
import { keep } from './actions.tsx'
import { TrialView, useDryRun } from './dry-run.tsx'
import { Fields } from './fields.tsx'
import { bodyOf, faultsOf, type Form, useBodies, useForm } from './form.ts'
import { applyLine } from './manifest.ts'
import { hrefOf, type Noun, type Values } from './noun.ts'
import { Once } from './once.tsx'
import { type Reply, sendOnce, thingIn } from './reads.ts'
import { useRequestKeys } from './request-key.ts'
import { type Shown, shownIn } from './secrets.ts'
import { commandLine, curlOf } from './snippet.ts'
import { terraformOf, type TerraformResource } from './terraform.ts'

export interface CreatePageProps {
  readonly noun: Noun
  /** Filled in before, such as from a link. */
  readonly given: Values
}

export function CreatePage({ noun, given }: CreatePageProps): ReactNode {
  const bodies = useBodies()
  const texts = nounTexts(noun.name)
  const title = t().list.create(texts.one)
  const crumbs = [{ name: texts.many, href: noun.path }, { name: title }]
  const body = noun.create === undefined ? undefined : bodies?.[noun.create]
  return (
    <Page title={title} crumbs={crumbs}>
      {noun.create === undefined || body === undefined ? (
        <Panel>
          <Loading lines={6} />
        </Panel>
      ) : (
        <CreateForm noun={noun} create={noun.create} body={body} given={given} />
      )}
    </Page>
  )
}

interface CreateFormProps extends CreatePageProps {
  readonly create: OperationId
  readonly body: BodySchema
}

function CreateForm({ noun, create, body, given }: CreateFormProps): ReactNode {
  const form = useForm({ ...noun.initial, ...given })
  const fields = noun.form ?? []
  const values = bodyOf(fields, form.values)
  const { send, isBusy, isSent, refusal, made, leave } = useCreation(noun, create, form)
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    const faults = faultsOf(fields, body, form.values, t().problem.field)
    form.setErrors(faults)
    if (Object.keys(faults).length === 0) send(values)
  }
  return (
    <Split aside={<Aside noun={noun} create={create} form={form} values={values} body={body} isSent={isSent} />}>
      <form className="form" onSubmit={submit} noValidate aria-label={t().list.create(nounTexts(noun.name).one)}>
        <Fields fields={fields} body={body} form={form} />
        {made?.shown === undefined ? null : (
          <Once shown={[made.shown]} rotate={noun.rotate} isReadable={noun.secret !== undefined} onClose={leave} />
        )}
        {refusal === undefined ? null : (
          <ProblemView
            refusal={refusal}
            take={({ zone, plan }) => {
              form.set('zone', zone)
              form.set('plan', plan)
            }}
          />
        )}
        <div className="form-end">
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {t().list.create(nounTexts(noun.name).one)}
          </Button>
          <ButtonLink href={noun.path} kind="quiet">
            {t().ui.cancel}
          </ButtonLink>
        </div>
      </form>
    </Split>
  )
}

interface Made {
  readonly href: string
  readonly shown: Shown | undefined
}

interface Creation {
  readonly send: (values: Values) => void
  readonly isBusy: boolean
  /** It is being made, or was. */
  readonly isSent: boolean
  readonly refusal: Refusal | undefined
  /** What was made, while its secrets are shown. */
  readonly made: Made | undefined
  readonly leave: () => void
}

/** The same form makes one thing, however often it is sent; an edit makes another. */
function useCreation(noun: Noun, create: OperationId, form: Form): Creation {
  const keys = useRequestKeys()
  const [made, setMade] = useState<Made>()
  const go = useGo()
  const creation = useMutation({
    mutationFn: (values: Values): Promise<Reply> => sendOnce(create, { body: values, idempotencyKey: keys.of(values) }),
    onSuccess: ({ answer, isLost }) => {
      const item = thingIn(noun, answer)
      if (item === undefined) return
      keep(noun, item)
      const isDone = answer['operation'] === undefined
      notify((isDone ? t().form.created : t().form.creating)(noun.titleOf(item)))
      const shown = shownIn(answer, { id: item.id, name: noun.titleOf(item), hasSecrets: isLost })
      const next = { href: hrefOf(noun, item), shown }
      if (shown === undefined) go(next.href)
      else setMade(next)
    },
    onError: (error) => {
      if (error instanceof Refusal) form.setErrors(error.fields)
    },
  })
  return {
    send: creation.mutate,
    isBusy: creation.isPending,
    isSent: creation.isPending || creation.isSuccess,
    refusal: creation.error instanceof Refusal ? creation.error : undefined,
    made,
    leave: () => {
      // the mutation kept the answer, and so the secret
      creation.reset()
      if (made !== undefined) go(made.href)
    },
  }
}

interface AsideProps {
  readonly noun: Noun
  readonly create: OperationId
  readonly form: Form
  readonly values: Values
  readonly body: BodySchema
  readonly isSent: boolean
}

/** A snippet is copied into shells and notes: a name is in the place of a secret. */
const withoutSecrets = (noun: Noun, values: Values): Values =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      noun.form?.some((field) => field.name === name && field.as === 'secret') === true ? name.toUpperCase() : value,
    ]),
  )

function Aside({ noun, create, form, values, body, isSent }: AsideProps): ReactNode {
  const rule = ruleOf(create)
  const said = withoutSecrets(noun, values)
  const command = commandLine(rule, {}, said, body.flags)
  const hasSecret = (noun.form ?? []).some(({ as }) => as === 'secret')
  const isComplete = Object.keys(faultsOf(noun.form ?? [], body, form.values, t().problem.field)).length === 0
  const trial = useDryRun({
    operation: create,
    body: values,
    isOn: body.takesDryRun === true && isComplete && !hasSecret && !isSent,
  })
  const manifest = trial.result?.manifest ?? undefined
  const terraform = useTerraform(create, said)
  const isPriced = trial.result !== undefined || trial.refusal !== undefined
  const forms = [
    ...(command === undefined ? [] : [{ name: 'CLI', text: command }]),
    { name: 'curl', text: curlOf(rule, {}, said, location.origin) },
    ...(manifest === undefined ? [] : [{ name: 'kubectl', text: applyLine(manifest) }]),
    ...(terraform === undefined ? [] : [{ name: 'Terraform', text: terraform }]),
  ]
  return (
    <>
      {isPriced ? <TrialView trial={trial} /> : null}
      {noun.usePrice === undefined || isPriced ? null : <PriceOf usePrice={noun.usePrice} values={form.values} />}
      <Stack gap="tight">
        <Soft>{t().form.asCommand}</Soft>
        <Snippet label={t().form.asCommand} forms={forms} />
      </Stack>
    </>
  )
}

/** Undefined for what the provider does not serve. */
function useTerraform(create: OperationId, body: Values): string | undefined {
  const { data } = useQuery({
    queryKey: ['terraform'],
    queryFn: async () => (await portal().terraform?.()) ?? NO_RESOURCES,
    staleTime: Number.POSITIVE_INFINITY,
  })
  const resource = data?.[create]
  return resource === undefined ? undefined : terraformOf(resource, body)
}

const NO_RESOURCES: Readonly<Record<string, TerraformResource>> = {}

interface PriceOfProps {
  readonly usePrice: NonNullable<Noun['usePrice']>
  readonly values: Values
}

function PriceOf({ usePrice, values }: PriceOfProps): ReactNode {
  const price = usePrice(values)
  if (price === undefined) return null
  return (
    <Panel>
      <Price
        amount={money(price.monthlyCents)}
        note={`${t().form.perMonth} · ${t().form.perHour(smallMoney(price.hourlyMillicents))}`}
      />
      <Soft>{t().form.billedBeside}</Soft>
    </Panel>
  )
}
